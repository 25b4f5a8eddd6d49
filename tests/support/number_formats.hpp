// SPDX-License-Identifier: Apache-2.0
// The element types of librun as the tests see them: how to read, write and combine one element.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "librun/types.h"

namespace librun_test {

/// A binary float with `MantissaBits` stored bits, rounded to nearest even, in 16 bits.
template <int MantissaBits, int MinExponent, int MaxExponent>
struct SmallFloat {
  using Storage = std::uint16_t;
  using Accumulator = float;
  static constexpr int kExponentBits = 15 - MantissaBits;
  static constexpr unsigned kMantissaMask = (1u << MantissaBits) - 1;
  static constexpr unsigned kInfinity = ((1u << kExponentBits) - 1) << MantissaBits;

  static float load(Storage bits) {
    const unsigned magnitude = bits & 0x7fffu;
    const float sign = bits & 0x8000u ? -1.0f : 1.0f;
    if (magnitude > kInfinity) return std::numeric_limits<float>::quiet_NaN();
    if (magnitude == kInfinity) return sign * std::numeric_limits<float>::infinity();
    const unsigned exponent = magnitude >> MantissaBits;
    const unsigned mantissa = magnitude & kMantissaMask;
    if (exponent == 0)
      return std::copysign(std::ldexp(static_cast<float>(mantissa), MinExponent - MantissaBits),
                           sign);
    const auto whole = static_cast<float>(mantissa | 1u << MantissaBits);
    return sign * std::ldexp(whole, static_cast<int>(exponent) + MinExponent - 1 - MantissaBits);
  }

  static Storage store(double value) {
    const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
    if (std::isnan(value)) return static_cast<Storage>(kInfinity | 1u << (MantissaBits - 1));
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return static_cast<Storage>(sign | kInfinity);
    if (magnitude == 0) return static_cast<Storage>(sign);
    const int exponent = std::max(std::ilogb(magnitude), MinExponent);
    // In units of the last place; nearbyint rounds to nearest even.
    auto units =
        static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, MantissaBits - exponent)));
    int biased = exponent - MinExponent + 1;
    if (units < 1u << MantissaBits) biased = 0;             // subnormal
    if (units == 2u << MantissaBits) units /= 2, ++biased;  // rounded up into the next binade
    if (biased - 1 + MinExponent > MaxExponent) return static_cast<Storage>(sign | kInfinity);
    return static_cast<Storage>(sign | static_cast<unsigned>(biased) << MantissaBits |
                                (units & kMantissaMask));
  }
};

using Half = SmallFloat<10, -14, 15>;
using Bfloat = SmallFloat<7, -126, 127>;

/// A type of the language; integers are combined as unsigned, so that they wrap.
template <class T>
struct Native {
  using Storage = T;
  using Accumulator = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

template <class T>
T combine(librun_op_t op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  switch (op) {
    case LIBRUN_MIN:
      return b < a ? b : a;
    case LIBRUN_MAX:
      return a < b ? b : a;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return static_cast<T>(op == LIBRUN_SUM ? x + y : x * y);
  } else {
    return op == LIBRUN_SUM ? a + b : a * b;
  }
}

/// Calls `use` with the format of `dtype`.
template <class Use>
decltype(auto) with_format(librun_dtype_t dtype, Use&& use) {
  switch (dtype) {
    case LIBRUN_FLOAT16:
      return use(Half{});
    case LIBRUN_BFLOAT16:
      return use(Bfloat{});
    case LIBRUN_FLOAT64:
      return use(Native<double>{});
    case LIBRUN_INT8:
      return use(Native<std::int8_t>{});
    case LIBRUN_UINT8:
      return use(Native<std::uint8_t>{});
    case LIBRUN_INT32:
      return use(Native<std::int32_t>{});
    case LIBRUN_UINT32:
      return use(Native<std::uint32_t>{});
    case LIBRUN_INT64:
      return use(Native<std::int64_t>{});
    case LIBRUN_UINT64:
      return use(Native<std::uint64_t>{});
    default:
      return use(Native<float>{});
  }
}

template <class Format>
typename Format::Accumulator load_at(const void* data, std::size_t index) {
  typename Format::Storage raw;
  std::memcpy(&raw, static_cast<const char*>(data) + index * sizeof(raw), sizeof(raw));
  return Format::load(raw);
}

template <class Format, class Value>
void store_at(void* data, std::size_t index, Value value) {
  const typename Format::Storage raw = Format::store(value);
  std::memcpy(static_cast<char*>(data) + index * sizeof(raw), &raw, sizeof(raw));
}

}  // namespace librun_test
