// SPDX-License-Identifier: Apache-2.0
#include "car_checkpoint/sequence.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace car::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

/// The driver gives up on a lock by itself; it is left the time to say so.
constexpr std::chrono::milliseconds kGrace{2000};

}  // namespace

const char* name_of(Step step) {
  constexpr const char* kNames[] = {"lock", "checkpoint", "restore", "unlock"};
  return kNames[static_cast<int>(step)];
}

/// What one thread found out; it may outlive the wait for it.
struct Sequence::Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  bool timed_out = false;
  std::string error;
  CudaState state = CudaState::unknown;
};

Sequence::Sequence(std::shared_ptr<CheckpointDriver> driver, std::vector<Member> members,
                   std::chrono::milliseconds timeout, std::vector<GpuMove> moves, Observer observer)
    : driver_(std::move(driver)),
      members_(std::move(members)),
      timeout_(timeout),
      moves_(std::move(moves)),
      observer_(std::move(observer)) {}

Sequence::Action Sequence::action_of(Step step) const {
  // By value: the thread may outlive this object.
  const auto driver = driver_;
  switch (step) {
    case Step::lock:
      return [driver, timeout = timeout_](pid_t pid) { driver->lock(pid, timeout); };
    case Step::checkpoint:
      return [driver](pid_t pid) { driver->checkpoint(pid); };
    case Step::restore:
      return [driver, moves = moves_](pid_t pid) { driver->restore(pid, moves); };
    case Step::unlock:
      return [driver](pid_t pid) { driver->unlock(pid); };
  }
  return {};
}

/// Runs `action` and looks at the state afterwards, for all members at once.
void Sequence::ask(const std::vector<Member*>& members, const Action& action) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (const Member* member : members) {
    auto answer = answers.emplace_back(std::make_shared<Answer>());
    std::thread([answer, action, driver = driver_, pid = member->pid] {
      std::string error;
      bool timed_out = false;
      CudaState state = CudaState::unknown;
      try {
        if (action) action(pid);
      } catch (const CheckpointError& failure) {
        error = failure.what();
        timed_out = failure.kind() == CheckpointError::Kind::timeout;
      }
      try {
        state = driver->state(pid);
      } catch (const CheckpointError& failure) {
        if (error.empty()) error = failure.what();
      }
      const std::lock_guard lock(answer->mutex);
      answer->error = error;
      answer->timed_out = timed_out;
      answer->state = state;
      answer->done = true;
      answer->changed.notify_all();
    }).detach();
  }
  const auto deadline = Clock::now() + timeout_ + kGrace;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Answer& answer = *answers[i];
    Member& member = *members[i];
    std::unique_lock lock(answer.mutex);
    if (!answer.changed.wait_until(lock, deadline, [&] { return answer.done; })) {
      any_timed_out_ = true;
      member.state = CudaState::unknown;
      member.is_lost = true;
      if (member.error.empty())
        member.error = fmt::format("the driver did not answer within {} ms", timeout_.count());
      continue;
    }
    any_timed_out_ = any_timed_out_ || answer.timed_out;
    member.state = answer.state;
    if (member.error.empty()) member.error = answer.error;
  }
}

void Sequence::look() {
  std::vector<Member*> all;
  for (Member& member : members_) all.push_back(&member);
  ask(all, {});
}

StepResult Sequence::run_on(Step step, const std::function<bool(const Member&)>& chosen) {
  constexpr CudaState kWanted[] = {CudaState::locked, CudaState::checkpointed, CudaState::locked,
                                   CudaState::running};
  const CudaState wanted = kWanted[static_cast<int>(step)];
  std::vector<Member*> members;
  std::vector<std::string> errors_before;
  for (Member& member : members_)
    if (!member.is_lost && chosen(member)) {
      members.push_back(&member);
      errors_before.push_back(member.error);
    }
  const bool had_timeout = any_timed_out_;
  any_timed_out_ = false;
  const auto start = Clock::now();
  ask(members, action_of(step));
  StepResult result{step, true, any_timed_out_, {}};
  any_timed_out_ = any_timed_out_ || had_timeout;
  result.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  for (std::size_t i = 0; i < members.size(); ++i) {
    Member& member = *members[i];
    // What has an error from before is being undone: only the state can tell how that went.
    const bool failed = member.state != wanted || member.error != errors_before[i];
    if (!failed) continue;
    result.ok = false;
    if (member.error.empty())
      member.error =
          fmt::format("it is {} after the {}", car::name_of(member.state), name_of(step));
    // A lock that failed has changed nothing. What cannot be restored, or unlocked, stays so.
    const bool can_go_on = member.state == CudaState::running ||
                           (step == Step::checkpoint && member.state == CudaState::locked);
    member.is_lost = !can_go_on && member.state != wanted;
  }
  if (observer_ && !members.empty()) observer_(result, members_);
  return result;
}

bool Sequence::run(Step step) {
  const auto all = [](const Member&) { return true; };
  if (run_on(step, all).ok) return true;
  undo();
  return false;
}

void Sequence::undo() {
  const auto is_in = [](CudaState state) {
    return [state](const Member& member) { return member.state == state; };
  };
  const auto any = [&](CudaState state) {
    for (const Member& member : members_)
      if (!member.is_lost && member.state == state) return true;
    return false;
  };
  // One that cannot be restored must not keep the others from being unlocked.
  if (any(CudaState::checkpointed)) run_on(Step::restore, is_in(CudaState::checkpointed));
  if (any(CudaState::locked)) run_on(Step::unlock, is_in(CudaState::locked));
}

std::vector<std::string> summary_of(const std::vector<Member>& members) {
  std::string safe;
  std::vector<std::string> lines;
  for (const Member& member : members) {
    if (member.is_lost) {
      lines.push_back("lost: " + member.name + ": " + member.error);
      continue;
    }
    if (!member.error.empty()) lines.push_back("failed: " + member.name + ": " + member.error);
    safe += (safe.empty() ? "safe: " : ", ") + member.name + ", " + car::name_of(member.state);
  }
  if (!safe.empty()) lines.push_back(safe);
  return lines;
}

}  // namespace car::checkpoint
