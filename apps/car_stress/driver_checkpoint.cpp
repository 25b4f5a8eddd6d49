// SPDX-License-Identifier: Apache-2.0
#include "car_stress/driver_checkpoint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "car_stress/ending.hpp"
#include "common/exit_codes.hpp"
#include "common/hosts.hpp"
#include "librun/librun.hpp"

namespace car::stress {
namespace {

constexpr std::chrono::milliseconds kLockTimeout{30000};
constexpr const char* kNames[] = {"lock", "checkpoint", "restore", "unlock"};

}  // namespace

DriverCheckpoint::DriverCheckpoint(const Options& options, const ChosenDevice& device,
                                   const Agreement& agreement, Journal& journal, Tally& tally)
    : journal_(journal), tally_(tally) {
  std::string reason;
  try {
    if (device.kind != LIBRUN_DEVICE_CUDA) {
      reason = "the data is on the host";
    } else {
      driver_ = make_checkpoint_driver();
      const auto gpus = driver_->gpus();
      if (driver_->is_shared_by_mps(device.memory->ordinal()))
        reason = "the GPU is used through MPS, where the driver checkpoints nothing";
      if (options.rotate_gpus && gpus.size() < 2) reason = "--gpu-map rotate takes 2 GPUs";
      if (options.rotate_gpus) moves_ = rotation_of(gpus);
    }
  } catch (const CheckpointError& error) {
    reason = error.what();
  }
  if (!reason.empty()) reason = fmt::format("rank {}: {}", journal.rank(), reason);
  const std::string first = agreement.first_text(reason);
  if (!first.empty()) throw NotRun("the driver cannot checkpoint here: " + first);
}

void DriverCheckpoint::call(Step step) {
  const pid_t self = ::getpid();
  switch (step) {
    case Step::lock:
      return driver_->lock(self, kLockTimeout);
    case Step::checkpoint:
      return driver_->checkpoint(self);
    case Step::restore:
      return driver_->restore(self, moves_);
    case Step::unlock:
      return driver_->unlock(self);
  }
}

void DriverCheckpoint::step(Step step, const Agreement& agreement) {
  const char* const name = kNames[static_cast<int>(step)];
  journal_.doing(fmt::format("{} by the driver", name));
  std::string error;
  bool not_supported = false;
  try {
    call(step);
  } catch (const CheckpointError& failure) {
    error = fmt::format("rank {}: {}", journal_.rank(), failure.what());
    not_supported = failure.kind() == CheckpointError::Kind::not_supported;
  }
  const std::string first = agreement.first_text(error);
  if (first.empty()) return;
  const bool none_does = !agreement.first_text(not_supported ? "not supported" : "").empty();
  undo(step, error.empty());
  if (none_does && step == Step::lock && !has_locked_)
    throw NotRun("the driver cannot checkpoint here: " + first);
  throw librun::Error(LIBRUN_SYSTEM, -1,
                      fmt::format("the {} by the driver failed: {}", name, first));
}

/// @param here whether the step went well on this rank
void DriverCheckpoint::undo(Step failed, bool here) {
  try {
    const pid_t self = ::getpid();
    const bool is_checkpointed = failed == Step::checkpoint && here;
    if (is_checkpointed) driver_->restore(self, moves_);
    const bool is_locked = failed == Step::lock ? here : failed != Step::unlock || !here;
    if (failed == Step::restore && !here)
      throw CheckpointError(CheckpointError::Kind::failed, "its data is gone");
    if (is_locked) driver_->unlock(self);
  } catch (const CheckpointError& error) {
    // Every further call of CUDA would wait for ever.
    std::fprintf(stderr, "car_stress: %s: this rank is lost: %s\n", journal_.where().c_str(),
                 error.what());
    leave_alone(kExitFailure);
  }
}

void DriverCheckpoint::run(const Agreement& agreement) {
  const auto start = std::chrono::steady_clock::now();
  step(Step::lock, agreement);
  has_locked_ = true;
  step(Step::checkpoint, agreement);
  // Not even NVML answers a process that is checkpointed: car_checkpoint shows the memory, from
  // outside.
  const auto held = std::chrono::steady_clock::now();
  step(Step::restore, agreement);
  step(Step::unlock, agreement);
  tally_.checkpoint.add(held - start);
  tally_.restore.add(std::chrono::steady_clock::now() - held);
  ++tally_.checkpoints;
}

std::string leave_out_waiting(Options& options, const ChosenDevice& device) {
  if (!any_gpu_is_shared(gather_places(*device.memory))) return {};
  options.algo = LIBRUN_ALGO_STEPPED;
  options.graphs = 0;
  // Its kernels wait too.
  setenv("LIBRUN_SELFTEST", "0", 1);
  return "ranks share a GPU, where kernels that wait for each other die after a restore: algorithm "
         "stepped, no graphs, no self-test";
}

}  // namespace car::stress
