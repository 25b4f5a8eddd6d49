// SPDX-License-Identifier: Apache-2.0
// Takes a set of processes through lock, checkpoint, restore and unlock: each step over all of them
// before the next, and back again when one of them fails.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint_driver.hpp"

namespace car::checkpoint {

enum class Step { lock, checkpoint, restore, unlock };
const char* name_of(Step step);

/// One process and what became of it.
struct Member {
  pid_t pid = 0;
  std::string name;  ///< "rank 2 (process 4711)"
  CudaState state = CudaState::unknown;
  std::string error{};  ///< "" or the first thing that failed
  /// Its data or its use of the GPU is gone for good, or it did not answer in time.
  bool is_lost = false;
};

/// How one step went over all processes.
struct StepResult {
  Step step = Step::lock;
  bool ok = true;
  bool timed_out = false;
  std::chrono::milliseconds elapsed{0};
};

/// Runs the steps in a thread for each process. A call that does not return in time keeps its
/// thread: the driver cannot be told to give up.
class Sequence {
 public:
  /// Called after each step, also those that undo.
  using Observer = std::function<void(const StepResult&, const std::vector<Member>&)>;

  Sequence(std::shared_ptr<CheckpointDriver> driver, std::vector<Member> members,
           std::chrono::milliseconds timeout, std::vector<GpuMove> moves, Observer observer);

  /// Fills in what the driver says of each, with the deadline.
  void look();

  /// Runs one step over all processes. When it fails on one, what it did on the others is undone:
  /// locked ones are unlocked, checkpointed ones restored and unlocked, restored ones unlocked.
  /// @return whether it went well on all
  bool run(Step step);
  /// Restores and unlocks what is checkpointed, unlocks what is locked.
  void undo();

  const std::vector<Member>& members() const { return members_; }
  bool any_timed_out() const { return any_timed_out_; }

 private:
  struct Answer;
  using Action = std::function<void(pid_t)>;
  /// On the members that `chosen` names, in parallel.
  StepResult run_on(Step step, const std::function<bool(const Member&)>& chosen);
  Action action_of(Step step) const;
  void ask(const std::vector<Member*>& members, const Action& action);

  std::shared_ptr<CheckpointDriver> driver_;
  std::vector<Member> members_;
  std::chrono::milliseconds timeout_;
  std::vector<GpuMove> moves_;
  Observer observer_;
  bool any_timed_out_ = false;
};

/// "safe: rank 0 (process 12), ...; lost: rank 1 (process 13): ...". A line for each kind.
std::vector<std::string> summary_of(const std::vector<Member>& members);

}  // namespace car::checkpoint
