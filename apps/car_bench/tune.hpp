// SPDX-License-Identifier: Apache-2.0
// --tune: from a run with all algorithms to tables for LIBRUN_TUNING.
#pragma once

#include <string>
#include <vector>

#include "car_bench/options.hpp"
#include "car_bench/report.hpp"
#include "car_bench/tuning_file.hpp"

namespace car::bench {

/// A table for plain buffers, and one for registered ones where zero_copy ran; for each width of
/// the types where there are several.
std::vector<TunedTable> tune(const Options& options, const RunRecord& record);

/// What the tables say, for people.
std::string tuning_text(const Options& options, const std::vector<TunedTable>& tables);

}  // namespace car::bench
