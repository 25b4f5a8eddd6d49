// SPDX-License-Identifier: Apache-2.0
#include "support/model.hpp"

#include <sstream>

#include "support/number_formats.hpp"

namespace librun_test {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// A float of either sign with a magnitude between 2^-range and 2^range.
double random_float(std::uint64_t bits, int range) {
  const double mantissa = 1.0 + static_cast<double>(bits >> 12) / 4503599627370496.0;
  const int exponent = static_cast<int>(bits & 63) % (2 * range) - range;
  return (bits & 64 ? -1 : 1) * std::ldexp(mantissa, exponent);
}

template <class Format>
void fill_random(Bytes& data, std::size_t count, std::uint64_t seed) {
  using Accumulator = typename Format::Accumulator;
  const int range = std::is_same_v<Format, Half> ? 7 : 20;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mix(seed + i);
    if constexpr (std::is_floating_point_v<Accumulator>)
      store_at<Format>(data.data(), i, static_cast<Accumulator>(random_float(bits, range)));
    else
      store_at<Format>(data.data(), i, static_cast<Accumulator>(bits));
  }
}

template <class Format>
void fill_pattern(Bytes& data, std::size_t count, int rank, std::uint64_t k) {
  using Accumulator = typename Format::Accumulator;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = (static_cast<std::uint64_t>(rank) + 1) * ((i + k) % 7 + 1);
    store_at<Format>(data.data(), i, static_cast<Accumulator>(value));
  }
}

}  // namespace

Bytes make_input(Fill fill, librun_dtype_t dtype, std::size_t count, int rank, std::uint64_t k) {
  return with_format(dtype, [&]<class Format>(Format) {
    Bytes data(count * sizeof(typename Format::Storage));
    const std::uint64_t seed = mix(k * 64 + static_cast<std::uint64_t>(rank)) + mix(dtype);
    if (fill == Fill::random)
      fill_random<Format>(data, count, seed);
    else
      fill_pattern<Format>(data, count, rank, k);
    return data;
  });
}

Bytes reduce(const std::vector<Bytes>& inputs, librun_dtype_t dtype, librun_op_t op) {
  return with_format(dtype, [&]<class Format>(Format) {
    Bytes result(inputs[0].size());
    const std::size_t count = result.size() / sizeof(typename Format::Storage);
    for (std::size_t i = 0; i < count; ++i) {
      auto value = load_at<Format>(inputs[0].data(), i);
      for (std::size_t rank = 1; rank < inputs.size(); ++rank)
        value = combine(op, value, load_at<Format>(inputs[rank].data(), i));
      store_at<Format>(result.data(), i, value);
    }
    return result;
  });
}

Bytes expected_result(Fill fill, librun_dtype_t dtype, librun_op_t op, std::size_t count, int world,
                      std::uint64_t k) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < world; ++rank)
    inputs.push_back(make_input(fill, dtype, count, rank, k));
  return reduce(inputs, dtype, op);
}

std::string first_difference(librun_dtype_t dtype, const void* got, const Bytes& expected) {
  if (expected.empty() || std::memcmp(got, expected.data(), expected.size()) == 0) return "";
  return with_format(dtype, [&]<class Format>(Format) -> std::string {
    const std::size_t element_bytes = sizeof(typename Format::Storage);
    const std::size_t count = expected.size() / element_bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * element_bytes;
      if (std::memcmp(static_cast<const char*>(got) + at, expected.data() + at, element_bytes) == 0)
        continue;
      const auto mine = load_at<Format>(got, i);
      const auto theirs = load_at<Format>(expected.data(), i);
      if (mine != mine && theirs != theirs) continue;
      std::ostringstream text;
      text << "element " << i << " of " << count << ": got " << +mine << ", expected " << +theirs;
      return text.str();
    }
    return "";
  });
}

Bytes filled(librun_dtype_t dtype, std::size_t count, double value) {
  return with_format(dtype, [&]<class Format>(Format) {
    Bytes data(count * sizeof(typename Format::Storage));
    for (std::size_t i = 0; i < count; ++i)
      store_at<Format>(data.data(), i, static_cast<typename Format::Accumulator>(value));
    return data;
  });
}

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace librun_test
