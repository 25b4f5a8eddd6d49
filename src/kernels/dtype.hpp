// SPDX-License-Identifier: Apache-2.0
// Element types: sizes, and 16-bit floats in plain integer arithmetic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "librun/types.h"

namespace librun {

/// Bytes of one element; 0 for a type that does not exist.
constexpr std::size_t element_bytes(librun_dtype_t dtype) {
  constexpr std::size_t kBytes[LIBRUN_DTYPE_COUNT] = {2, 2, 4, 8, 1, 1, 4, 4, 8, 8};
  return dtype >= 0 && dtype < LIBRUN_DTYPE_COUNT ? kBytes[dtype] : 0;
}

/// IEEE half to float, exact; a signalling NaN becomes quiet, as the hardware does.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// Float to IEEE half, rounded to nearest even, subnormals kept.
constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  std::uint32_t half;
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves the half's subnormal grid as the float's unit in the last place.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  } else {
    half = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace librun
