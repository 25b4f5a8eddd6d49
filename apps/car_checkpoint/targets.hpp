// SPDX-License-Identifier: Apache-2.0
// The processes that a checkpoint is about, and what is in the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "car_checkpoint/options.hpp"
#include "common/process_status.hpp"

namespace car::checkpoint {

struct Target {
  pid_t pid = 0;
  Existence existence = Existence::gone;
  std::string command;
  std::optional<ProcessStatus> status;  ///< nothing: it does not use librun, as far as can be seen

  /// Of its largest communicator; null when it has none.
  const ProcessStatus::Communicator* communicator() const;
  /// "rank 2 (process 4711)", or "process 4711".
  std::string name() const;
  /// What forbids to touch it, a line each.
  /// @param blockers whether those of librun count: to restore and unlock, nothing must be
  /// suspended
  std::vector<std::string> hindrances(bool blockers) const;
};

Target look_at(pid_t pid);
/// What the options name, in ascending order of rank where they have one.
std::vector<Target> find_targets(const Options& options);

}  // namespace car::checkpoint
