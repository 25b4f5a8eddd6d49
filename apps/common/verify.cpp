// SPDX-License-Identifier: Apache-2.0
// The reference model, written independently of the library: plain scalar loops, rank order.
#include "common/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "librun/librun.h"

namespace car {
namespace {

// Prime, so that a result displaced by any power of two or by a whole slice is seen.
constexpr std::size_t kPeriod = 1009;

std::uint64_t random_bits(std::uint64_t seed, int rank, std::size_t index) {
  return mix64(seed ^ mix64(static_cast<std::uint64_t>(rank) * kPeriod + index));
}

float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 31) {
    magnitude =
        mantissa ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::uint16_t half_bits(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude == 0.0f) return static_cast<std::uint16_t>(sign);
  // Counts units in the last place of the value's binade; a carry moves on to the next binade.
  const int binade = std::max(std::ilogb(magnitude), -14);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 10 - binade)));
  return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(binade + 14) * 1024u + units));
}

float bfloat_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t bfloat_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  const std::uint32_t kept = bits >> 16;
  const std::uint32_t dropped = bits & 0xffffu;
  const bool up = dropped > 0x8000u || (dropped == 0x8000u && (kept & 1u));
  return static_cast<std::uint16_t>(kept + up);
}

/// How one type is drawn, widened to its accumulator, and narrowed again.
template <class T>
struct Integer {
  using Stored = T;
  using Acc = std::make_unsigned_t<T>;  // wraps without undefined behaviour
  static Acc widen(T value) { return static_cast<Acc>(value); }
  static T narrow(Acc value) { return static_cast<T>(value); }
  static bool less_equal(Acc a, Acc b) { return static_cast<T>(a) <= static_cast<T>(b); }
  static T draw(std::uint64_t bits, librun_op_t op) {
    // Even factors would soon make every product zero.
    return static_cast<T>(op == LIBRUN_PROD ? bits | 1u : bits);
  }
};

template <class S, class A, int MantissaBits, int Bias>
struct Floating {
  using Stored = S;
  using Acc = A;
  static bool less_equal(A a, A b) { return a <= b; }

  static S draw(std::uint64_t bits, librun_op_t op) {
    const std::uint64_t sign = (bits & 1u) << (sizeof(S) * 8 - 1);
    const auto choice = bits >> 1 & 63u;
    if (choice == 0 && op != LIBRUN_PROD) return make(sign);
    if (choice == 1 && (op == LIBRUN_MIN || op == LIBRUN_MAX))
      return make(sign | static_cast<std::uint64_t>(2 * Bias + 1) << MantissaBits);
    const std::uint64_t mantissa = bits >> 12 & ((std::uint64_t{1} << MantissaBits) - 1);
    // Products of 64 factors near one stay finite; sums of ten binades lose low bits.
    const int exponent = op == LIBRUN_PROD ? -static_cast<int>(bits >> 7 & 1u)
                                           : static_cast<int>((bits >> 7 & 31u) % 10) - 6;
    return make(sign | static_cast<std::uint64_t>(Bias + exponent) << MantissaBits | mantissa);
  }

 private:
  static S make(std::uint64_t bits) {
    if constexpr (sizeof(S) == 8) return std::bit_cast<S>(bits);
    if constexpr (sizeof(S) == 4) return std::bit_cast<S>(static_cast<std::uint32_t>(bits));
    if constexpr (sizeof(S) == 2) return static_cast<S>(bits);
  }
};

struct Float16 : Floating<std::uint16_t, float, 10, 15> {
  static float widen(std::uint16_t value) { return half_value(value); }
  static std::uint16_t narrow(float value) { return half_bits(value); }
};
struct Bfloat16 : Floating<std::uint16_t, float, 7, 127> {
  static float widen(std::uint16_t value) { return bfloat_value(value); }
  static std::uint16_t narrow(float value) { return bfloat_bits(value); }
};
struct Float32 : Floating<float, float, 23, 127> {
  static float widen(float value) { return value; }
  static float narrow(float value) { return value; }
};
struct Float64 : Floating<double, double, 52, 1023> {
  static double widen(double value) { return value; }
  static double narrow(double value) { return value; }
};

/// Calls f with the model of `dtype`.
template <class F>
void with_model(librun_dtype_t dtype, F&& f) {
  switch (dtype) {
    case LIBRUN_FLOAT16:
      return f(Float16{});
    case LIBRUN_BFLOAT16:
      return f(Bfloat16{});
    case LIBRUN_FLOAT32:
      return f(Float32{});
    case LIBRUN_FLOAT64:
      return f(Float64{});
    case LIBRUN_INT8:
      return f(Integer<std::int8_t>{});
    case LIBRUN_UINT8:
      return f(Integer<std::uint8_t>{});
    case LIBRUN_INT32:
      return f(Integer<std::int32_t>{});
    case LIBRUN_UINT32:
      return f(Integer<std::uint32_t>{});
    case LIBRUN_INT64:
      return f(Integer<std::int64_t>{});
    case LIBRUN_UINT64:
      return f(Integer<std::uint64_t>{});
    case LIBRUN_DTYPE_COUNT:
      return;
  }
}

template <class M>
typename M::Acc combine(typename M::Acc acc, typename M::Acc x, librun_op_t op) {
  using Acc = typename M::Acc;
  // Only a NaN differs from itself: it stays once it is there, and `!(acc <= NaN)` takes it.
  const bool is_number = acc == acc;
  switch (op) {
    case LIBRUN_PROD:
      // Narrow unsigned types are promoted to int, whose overflow is undefined.
      if constexpr (sizeof(Acc) < 4) return static_cast<Acc>(unsigned{acc} * unsigned{x});
      if constexpr (sizeof(Acc) >= 4) return acc * x;
      break;
    case LIBRUN_MIN:
      return is_number && !M::less_equal(acc, x) ? x : acc;
    case LIBRUN_MAX:
      return is_number && !(M::less_equal(x, acc)) ? x : acc;
    case LIBRUN_SUM:
    case LIBRUN_OP_COUNT:
      break;
  }
  return static_cast<Acc>(acc + x);
}

template <class M>
typename M::Stored expected(M, std::size_t index, librun_op_t op, int world, std::uint64_t seed) {
  const std::size_t place = index % kPeriod;
  auto acc = M::widen(M::draw(random_bits(seed, 0, place), op));
  for (int rank = 1; rank < world; ++rank)
    acc = combine<M>(acc, M::widen(M::draw(random_bits(seed, rank, place), op)), op);
  return M::narrow(acc);
}

/// One period of a pattern, as bytes. `element(i)` gives the i-th value.
template <class F>
std::vector<std::byte> make_period(std::size_t count, F&& element) {
  using Stored = decltype(element(std::size_t{0}));
  const std::size_t n = std::min(count, kPeriod);
  std::vector<std::byte> period(n * sizeof(Stored));
  for (std::size_t i = 0; i < n; ++i) {
    const Stored value = element(i);
    std::memcpy(period.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
  return period;
}

struct Expected {
  librun_dtype_t dtype = LIBRUN_DTYPE_COUNT;
  librun_op_t op = LIBRUN_OP_COUNT;
  int world = 0;
  std::uint64_t seed = 0;
  std::vector<std::byte> period;
};

/// The expected period; the last one is kept, since benchmarks check one pattern many times.
const std::vector<std::byte>& expected_period(std::size_t count, librun_dtype_t dtype,
                                              librun_op_t op, int world, std::uint64_t seed) {
  thread_local Expected kept;
  const std::size_t wanted_bytes = std::min(count, kPeriod) * librun_dtype_bytes(dtype);
  const bool same = kept.dtype == dtype && kept.op == op && kept.world == world &&
                    kept.seed == seed && kept.period.size() >= wanted_bytes;
  if (!same) {
    with_model(dtype, [&](auto model) {
      kept.period =
          make_period(count, [&](std::size_t i) { return expected(model, i, op, world, seed); });
    });
    kept.dtype = dtype;
    kept.op = op;
    kept.world = world;
    kept.seed = seed;
  }
  return kept.period;
}

}  // namespace

void fill_input(void* dst, std::size_t count, librun_dtype_t dtype, librun_op_t op, int rank, int,
                std::uint64_t seed) {
  if (count == 0) return;
  std::vector<std::byte> period;
  with_model(dtype, [&](auto model) {
    using Model = decltype(model);
    period = make_period(
        count, [&](std::size_t i) { return Model::draw(random_bits(seed, rank, i), op); });
  });
  auto* to = static_cast<std::byte*>(dst);
  const std::size_t size_bytes = count * librun_dtype_bytes(dtype);
  for (std::size_t offset = 0; offset < size_bytes; offset += period.size())
    std::memcpy(to + offset, period.data(), std::min(period.size(), size_bytes - offset));
}

std::uint64_t count_wrong(const void* result, std::size_t count, librun_dtype_t dtype,
                          librun_op_t op, int world, std::uint64_t seed, std::size_t* first_wrong) {
  if (count == 0) return 0;
  const auto& period = expected_period(count, dtype, op, world, seed);
  const auto* got = static_cast<const std::byte*>(result);
  const std::size_t element_bytes = librun_dtype_bytes(dtype);
  const std::size_t size_bytes = count * element_bytes;
  const std::size_t period_bytes = kPeriod * element_bytes;
  std::uint64_t wrong = 0;
  for (std::size_t offset = 0; offset < size_bytes; offset += period_bytes) {
    const std::size_t part_bytes = std::min(period_bytes, size_bytes - offset);
    if (std::memcmp(got + offset, period.data(), part_bytes) == 0) continue;
    for (std::size_t at = 0; at < part_bytes; at += element_bytes) {
      if (std::memcmp(got + offset + at, period.data() + at, element_bytes) == 0) continue;
      if (wrong++ == 0 && first_wrong) *first_wrong = (offset + at) / element_bytes;
    }
  }
  return wrong;
}

std::string expected_text(std::size_t index, librun_dtype_t dtype, librun_op_t op, int world,
                          std::uint64_t seed) {
  std::string text;
  with_model(dtype, [&](auto model) {
    const auto value = expected(model, index, op, world, seed);
    text = element_text(&value, dtype);
  });
  return text;
}

std::string element_text(const void* element, librun_dtype_t dtype) {
  std::string text;
  with_model(dtype, [&](auto model) {
    using Model = decltype(model);
    typename Model::Stored value;
    std::memcpy(&value, element, sizeof(value));
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, sizeof(value));
    const auto hex = fmt::format("0x{:0{}x}", bits, sizeof(value) * 2);
    if constexpr (std::is_integral_v<typename Model::Acc>)
      text = fmt::format("{} ({})", value, hex);
    else
      text = fmt::format("{:.9g} ({})", Model::widen(value), hex);
  });
  return text;
}

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t hash = mix64(size_bytes);
  std::size_t offset = 0;
  for (; offset + 8 <= size_bytes; offset += 8) {
    std::uint64_t word;
    std::memcpy(&word, from + offset, 8);
    hash = (std::rotl(hash, 23) ^ word) * 0x9fb21c651e98df25u;
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, from + offset, size_bytes - offset);
  return mix64(hash ^ tail);
}

}  // namespace car
