// SPDX-License-Identifier: Apache-2.0
// The steps of a checkpoint over a driver that is made up: their order, and what becomes of each
// process when a step fails on one of them.
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "car_checkpoint/sequence.hpp"
#include "support/catch.hpp"

using namespace car;
using namespace car::checkpoint;

namespace {

constexpr std::chrono::milliseconds kTimeout{150};

/// A step that fails for one process, and how it leaves it.
struct Failure {
  Step step;
  pid_t pid;
  CudaState left;
  bool hangs = false;
};

/// Shared by threads that may outlive the test when they hang.
class FakeDriver final : public CheckpointDriver {
 public:
  explicit FakeDriver(std::optional<Failure> failure = {}) : failure_(failure) {}

  CudaState state(pid_t pid) override {
    const std::lock_guard lock(mutex_);
    return state_of(pid);
  }
  void lock(pid_t pid, std::chrono::milliseconds timeout) override {
    if (timeout != kTimeout) throw CheckpointError(CheckpointError::Kind::failed, "wrong timeout");
    go(Step::lock, pid, CudaState::running, CudaState::locked);
  }
  void checkpoint(pid_t pid) override {
    go(Step::checkpoint, pid, CudaState::locked, CudaState::checkpointed);
  }
  void restore(pid_t pid, std::span<const GpuMove> moves) override {
    {
      const std::lock_guard lock(mutex_);
      moves_.assign(moves.begin(), moves.end());
    }
    go(Step::restore, pid, CudaState::checkpointed, CudaState::locked);
  }
  void unlock(pid_t pid) override { go(Step::unlock, pid, CudaState::locked, CudaState::running); }
  int restore_thread(pid_t) override { return 0; }
  std::vector<GpuUuid> gpus() override { return {}; }
  bool is_shared_by_mps(int) override { return false; }

  std::vector<std::pair<Step, pid_t>> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::vector<GpuMove> moves() const {
    const std::lock_guard lock(mutex_);
    return moves_;
  }

 private:
  CudaState state_of(pid_t pid) {
    return states_.try_emplace(pid, CudaState::running).first->second;
  }
  void go(Step step, pid_t pid, CudaState from, CudaState to) {
    std::unique_lock lock(mutex_);
    calls_.emplace_back(step, pid);
    if (failure_ && failure_->step == step && failure_->pid == pid) {
      if (failure_->hangs) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
      states_[pid] = failure_->left;
      throw CheckpointError(CheckpointError::Kind::failed, "made up");
    }
    if (state_of(pid) != from)
      throw CheckpointError(CheckpointError::Kind::failed, "not the state for it");
    states_[pid] = to;
  }

  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
  std::map<pid_t, CudaState> states_;
  std::vector<std::pair<Step, pid_t>> calls_;
  std::vector<GpuMove> moves_;
};

constexpr Step kCycle[] = {Step::lock, Step::checkpoint, Step::restore, Step::unlock};

struct Run {
  std::shared_ptr<FakeDriver> driver;
  Sequence sequence;
  std::vector<StepResult> results;
  bool ok = true;

  explicit Run(std::optional<Failure> failure = {}, std::vector<GpuMove> moves = {})
      : driver(std::make_shared<FakeDriver>(failure)),
        sequence(driver, {{1, "rank 0"}, {2, "rank 1"}, {3, "rank 2"}}, kTimeout, std::move(moves),
                 [this](const StepResult& result, const std::vector<Member>&) {
                   results.push_back(result);
                 }) {
    sequence.look();
    for (const Step step : kCycle) {
      ok = sequence.run(step);
      if (!ok) break;
    }
  }
  Run(const Run&) = delete;

  const Member& member(pid_t pid) const {
    return sequence.members().at(static_cast<std::size_t>(pid - 1));
  }
};

}  // namespace

TEST_CASE("each step is over on all processes before the next begins") {
  const std::vector<GpuMove> moves{{{1}, {2}}, {{2}, {1}}};
  const Run run({}, moves);
  CHECK(run.ok);
  const auto calls = run.driver->calls();
  REQUIRE(calls.size() == 12);
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(calls[i].first == kCycle[i / 3]);
  CHECK(run.driver->moves() == moves);
  for (const Member& member : run.sequence.members()) {
    CHECK(member.state == CudaState::running);
    CHECK(member.error.empty());
    CHECK_FALSE(member.is_lost);
  }
  CHECK(run.results.size() == 4);
  CHECK(summary_of(run.sequence.members()).size() == 1);
}

TEST_CASE("a lock that fails on one leaves all running") {
  for (const pid_t pid : {1, 2, 3}) {
    CAPTURE(pid);
    const Run run(Failure{Step::lock, pid, CudaState::running});
    CHECK_FALSE(run.ok);
    for (const Member& member : run.sequence.members()) {
      CHECK(member.state == CudaState::running);
      CHECK_FALSE(member.is_lost);
      CHECK(member.error.empty() == (member.pid != pid));
    }
    for (const auto& [step, of] : run.driver->calls()) {
      CHECK(step != Step::checkpoint);
      if (step == Step::unlock) CHECK(of != pid);
    }
  }
}

TEST_CASE("a checkpoint that fails on one brings the others back") {
  for (const pid_t pid : {1, 2, 3}) {
    for (const CudaState left : {CudaState::locked, CudaState::failed}) {
      CAPTURE(pid, left == CudaState::failed);
      const Run run(Failure{Step::checkpoint, pid, left});
      CHECK_FALSE(run.ok);
      for (const Member& member : run.sequence.members()) {
        const bool lost = member.pid == pid && left == CudaState::failed;
        CHECK(member.is_lost == lost);
        CHECK(member.state == (lost ? CudaState::failed : CudaState::running));
        CHECK(member.error.empty() == (member.pid != pid));
      }
      const auto lines = summary_of(run.sequence.members());
      const std::string word = left == CudaState::failed ? "lost: rank " : "failed: rank ";
      CHECK(lines.at(0).find(word + std::to_string(pid - 1)) == 0);
      CHECK(lines.back().find("safe: ") == 0);
    }
  }
}

TEST_CASE("one that cannot be restored is lost, the others go on") {
  for (const pid_t pid : {1, 2, 3}) {
    CAPTURE(pid);
    const Run run(Failure{Step::restore, pid, CudaState::checkpointed});
    CHECK_FALSE(run.ok);
    for (const Member& member : run.sequence.members()) {
      CHECK(member.is_lost == (member.pid == pid));
      if (member.pid != pid) CHECK(member.state == CudaState::running);
    }
    int restores = 0;
    for (const auto& [step, of] : run.driver->calls()) restores += step == Step::restore;
    CHECK(restores == 3);
  }
}

TEST_CASE("one that cannot be unlocked does not keep the others locked") {
  for (const pid_t pid : {1, 2, 3}) {
    CAPTURE(pid);
    const Run run(Failure{Step::unlock, pid, CudaState::locked});
    CHECK_FALSE(run.ok);
    for (const Member& member : run.sequence.members())
      CHECK((member.state == CudaState::running) == (member.pid != pid));
    CHECK(run.member(pid).is_lost);
  }
}

TEST_CASE("a driver that does not answer is left behind at the deadline") {
  for (const Step step : kCycle) {
    CAPTURE(name_of(step));
    const auto start = std::chrono::steady_clock::now();
    const Run run(Failure{step, 2, CudaState::unknown, true});
    CHECK_FALSE(run.ok);
    CHECK(run.sequence.any_timed_out());
    CHECK(run.member(2).is_lost);
    CHECK(run.member(2).error.find("did not answer within 150 ms") != std::string::npos);
    CHECK(run.member(1).state == CudaState::running);
    CHECK(run.member(3).state == CudaState::running);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  }
}

TEST_CASE("what was interrupted while checkpointed is brought back") {
  Run run(Failure{Step::restore, 99, CudaState::failed});
  CHECK(run.ok);
  CHECK(run.sequence.run(Step::lock));
  CHECK(run.sequence.run(Step::checkpoint));
  run.sequence.undo();
  for (const Member& member : run.sequence.members()) CHECK(member.state == CudaState::running);
}

TEST_CASE("maps of GPUs are complete, and bad ones are named") {
  const std::vector<GpuUuid> gpus{{1}, {2}, {3}};
  CHECK(parse_gpu_map("0=1,1=0", gpus) ==
        std::vector<GpuMove>{{gpus[0], gpus[1]}, {gpus[1], gpus[0]}, {gpus[2], gpus[2]}});
  CHECK(parse_gpu_map(uuid_text(gpus[2]) + "=2", gpus).size() == 3);
  CHECK(rotation_of(gpus) ==
        std::vector<GpuMove>{{gpus[0], gpus[1]}, {gpus[1], gpus[2]}, {gpus[2], gpus[0]}});
  CHECK(uuid_text({0x12, 0x34}).substr(0, 13) == "GPU-12340000-");
  for (const char* bad : {"", "0", "0=9", "0=1,0=2", "1=0,2=0", "GPU-1=0", "a=b"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_gpu_map(bad, gpus), std::invalid_argument);
  }
}
