// SPDX-License-Identifier: Apache-2.0
// What the ranks put in, and what an all-reduce of it must give: written for clarity, apart from
// the library's own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "librun/types.h"

namespace librun_test {

using Bytes = std::vector<std::byte>;

enum class Fill {
  pattern,  ///< rank r, call k, element i: (r+1) * ((i+k) mod 7 + 1); sums are exact in any type
  random    ///< floats of many magnitudes and both signs; integers over their whole range
};

/// What `rank` contributes to call `k`. The same on every rank that asks.
Bytes make_input(Fill fill, librun_dtype_t dtype, std::size_t count, int rank, std::uint64_t k);

/// The reduction in rank order: 16-bit floats are added up in fp32 and rounded once, integers wrap,
/// NaN wins in every op.
Bytes reduce(const std::vector<Bytes>& inputs, librun_dtype_t dtype, librun_op_t op);

/// reduce() of what all ranks contribute.
Bytes expected_result(Fill fill, librun_dtype_t dtype, librun_op_t op, std::size_t count, int world,
                      std::uint64_t k);

/// "" when all elements have the same bits (any NaN equals any NaN); else the first that differs.
std::string first_difference(librun_dtype_t dtype, const void* got, const Bytes& expected);

/// `count` elements of `value`, rounded to the type.
Bytes filled(librun_dtype_t dtype, std::size_t count, double value);

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes);

inline constexpr librun_dtype_t kAllDtypes[] = {
    LIBRUN_FLOAT16, LIBRUN_BFLOAT16, LIBRUN_FLOAT32, LIBRUN_FLOAT64, LIBRUN_INT8,
    LIBRUN_UINT8,   LIBRUN_INT32,    LIBRUN_UINT32,  LIBRUN_INT64,   LIBRUN_UINT64};
inline constexpr librun_dtype_t kFloatDtypes[] = {LIBRUN_FLOAT16, LIBRUN_BFLOAT16, LIBRUN_FLOAT32,
                                                  LIBRUN_FLOAT64};
inline constexpr librun_op_t kAllOps[] = {LIBRUN_SUM, LIBRUN_PROD, LIBRUN_MIN, LIBRUN_MAX};

}  // namespace librun_test
