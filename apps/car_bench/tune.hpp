// SPDX-License-Identifier: Apache-2.0
// --tune: from a run with all algorithms to tables for LIBRUN_TUNING.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "car_bench/options.hpp"
#include "car_bench/report.hpp"
#include "car_bench/tuning_file.hpp"

namespace car::bench {

struct Tuned {
  std::vector<TunedTable> tables;
  std::vector<std::string> texts;  ///< what each says, for people
};

/// A table for plain buffers, and one for registered ones where zero_copy ran; for each width of
/// the types. The fastest of all cycles counts: what disturbs a machine only makes calls slower.
/// @param usual what librun takes without any of this, for plain buffers
Tuned tune(const Options& options, const RunRecord& record,
           const std::function<librun_algo_t(const Result&)>& usual);

/// For the end of the table.
std::string tuning_text(const Options& options, const Tuned& tuned);

}  // namespace car::bench
