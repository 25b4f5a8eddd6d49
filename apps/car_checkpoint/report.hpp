// SPDX-License-Identifier: Apache-2.0
// What car_checkpoint shows: a table and a line for each step, or JSON.
#pragma once

#include <string>
#include <vector>

#include "car_checkpoint/sequence.hpp"
#include "car_checkpoint/targets.hpp"
#include "common/gpu_usage.hpp"

namespace car::checkpoint {

/// Memory in use on the GPUs at one moment.
struct Moment {
  std::string name;  ///< "before", "held", "after"
  std::vector<GpuUsage> usage;
};

struct Record {
  std::vector<Target> targets;
  std::vector<Member> members;  ///< empty where the driver was not asked
  std::vector<StepResult> steps;
  std::vector<Moment> moments;
  std::string error;
};

/// A line for each process, and lines for what is in the way and what is lost for good.
std::string table_of(const std::vector<Target>& targets, const std::vector<Member>& members);
std::string line_of(const StepResult& result);
std::string json_of(const Record& record, const Options& options, int exit_code);

}  // namespace car::checkpoint
