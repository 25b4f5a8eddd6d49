// SPDX-License-Identifier: Apache-2.0
// Seeded inputs whose all-reduce is known bit by bit, and the check of a result against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "librun/types.h"

namespace car {

/// Scrambles 64 bits; the one source of randomness of the apps.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// Writes what `rank` of `world` puts into the all-reduce. `dst` needs no alignment.
///
/// Values repeat after a prime number of elements. Sums of floats are really rounded, so that the
/// order of the ranks shows; zeros of both signs occur, NaN does not.
void fill_input(void* dst, std::size_t count, librun_dtype_t dtype, librun_op_t op, int rank,
                int world, std::uint64_t seed);

/// Number of elements of `result` that differ in any bit from the reduction in rank order.
/// @param first_wrong index of the first one, untouched when there is none; may be null
std::uint64_t count_wrong(const void* result, std::size_t count, librun_dtype_t dtype,
                          librun_op_t op, int world, std::uint64_t seed, std::size_t* first_wrong);

/// The right element at `index`, as text.
std::string expected_text(std::size_t index, librun_dtype_t dtype, librun_op_t op, int world,
                          std::uint64_t seed);

/// Value and bits of one element, e.g. "1.5 (0x3fc00000)". `element` needs no alignment.
std::string element_text(const void* element, librun_dtype_t dtype);

/// The same for equal bytes on every rank; not cryptographic.
std::uint64_t hash_bytes(const void* data, std::size_t size_bytes);

}  // namespace car
