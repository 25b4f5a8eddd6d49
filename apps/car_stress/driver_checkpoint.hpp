// SPDX-License-Identifier: Apache-2.0
// A real checkpoint of all ranks by the NVIDIA driver, between suspend and resume: each process
// takes itself through the steps, and all are done with one before any begins the next.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "car_stress/agreement.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/options.hpp"
#include "car_stress/tally.hpp"
#include "common/checkpoint_driver.hpp"
#include "common/device_choice.hpp"

namespace car::stress {

/// The driver does not checkpoint here: the run has neither passed nor failed.
class NotRun : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DriverCheckpoint {
 public:
  /// Collective over `agreement`; all ranks throw together.
  /// @throws NotRun where some rank's driver cannot
  DriverCheckpoint(const Options& options, const ChosenDevice& device, const Agreement& agreement,
                   Journal& journal, Tally& tally);

  /// All communicators are suspended. Collective over `agreement`.
  /// @throws NotRun when the first lock is not supported, librun::Error when a step fails, after
  /// this rank was brought back. A rank that cannot be brought back ends its process.
  void run(const Agreement& agreement);

 private:
  enum class Step { lock, checkpoint, restore, unlock };
  void step(Step step, const Agreement& agreement);
  void call(Step step);
  void undo(Step failed, bool here);

  std::unique_ptr<CheckpointDriver> driver_;
  std::vector<GpuMove> moves_;
  Journal& journal_;
  Tally& tally_;
  bool has_locked_ = false;  ///< ever
};

/// What ranks that share a GPU must leave out, since the driver does not time-slice them after a
/// restore: kernels that wait for each other. @return a line that says so; "" where none share
std::string leave_out_waiting(Options& options, const ChosenDevice& device);

}  // namespace car::stress
