// SPDX-License-Identifier: Apache-2.0
// The results as JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "car_bench/options.hpp"
#include "car_bench/result.hpp"
#include "common/hosts.hpp"

namespace car::bench {

struct RunRecord {
  std::string start_time;
  std::string end_time;
  std::vector<RankPlace> places;
  std::vector<std::string> baseline_titles;  ///< of the table's columns
  std::vector<std::string> notes;            ///< what a reader of the numbers must know
  std::vector<Result> results;
  std::vector<PhaseSamples> phases;
};

/// nccl-tests' keys where the thing exists there; one object, or one line a result.
std::string json_text(const Options& options, const RunRecord& record);
std::string csv_text(const RunRecord& record);
/// "2026-11-30T06:30:00Z".
std::string now_text();

}  // namespace car::bench
