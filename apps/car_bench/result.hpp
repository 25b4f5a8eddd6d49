// SPDX-License-Identifier: Apache-2.0
// What was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "librun/types.h"

namespace car::bench {

/// MPI has no 16-bit floats.
constexpr bool is_half(librun_dtype_t dtype) {
  return dtype == LIBRUN_FLOAT16 || dtype == LIBRUN_BFLOAT16;
}

/// One way to call, at one size. Times in microseconds of one call.
struct Timing {
  double median_us = 0;
  double p5_us = 0;
  double p95_us = 0;
  std::uint64_t wrong = 0;  ///< elements, over all ranks and checks

  double alg_gbps(std::uint64_t size_bytes) const {
    return median_us > 0 ? static_cast<double>(size_bytes) / median_us / 1e3 : 0;
  }
  /// What a link carries in an optimal ring: 2 (n-1) / n of the data.
  double bus_gbps(std::uint64_t size_bytes, int world) const {
    return alg_gbps(size_bytes) * 2 * (world - 1) / world;
  }
};

/// Another library at the same size; no timing where it does not take the call.
struct BaselineResult {
  std::string name;
  std::optional<Timing> timing;
};

struct Result {
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  librun_dtype_t dtype{};
  librun_op_t op{};
  librun_algo_t algo{};  ///< what was asked for
  librun_plan_t plan{};  ///< what that came to
  Timing out_of_place;
  Timing in_place;
  std::vector<BaselineResult> baselines;
  int iterations = 0;
};

/// All the times one phase of suspend or resume took.
struct PhaseSamples {
  std::string transition;
  std::string name;
  std::vector<double> us;
};

}  // namespace car::bench
