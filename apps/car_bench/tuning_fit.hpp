// SPDX-License-Identifier: Apache-2.0
// The fastest algorithm by size, as few steps, from measurements.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "librun/types.h"

namespace car::bench {

/// What the algorithms took at one size, in microseconds.
struct MeasuredSize {
  std::uint64_t size_bytes = 0;
  std::map<librun_algo_t, double> us;
};

struct FittedStep {
  std::uint64_t up_to_bytes = 0;
  librun_algo_t algo{};
};

struct Fit {
  std::vector<FittedStep> steps;
  double worst_ratio = 1;  ///< of the time of what is chosen to that of the fastest, over the sizes
};

/// As few steps as there can be, so that none of the sizes is slower than its fastest algorithm by
/// more than `slack` (0.02: 2 %). A step ends midway between two sizes, the last at the last size.
/// @param sizes in ascending order, not empty, each with the same algorithms
Fit fit_steps(const std::vector<MeasuredSize>& sizes, double slack);

}  // namespace car::bench
