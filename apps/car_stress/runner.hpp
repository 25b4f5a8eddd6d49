// SPDX-License-Identifier: Apache-2.0
// Runs the cycles of the plan and keeps the ranks together.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "car_stress/agreement.hpp"
#include "car_stress/caller.hpp"
#include "car_stress/driver_checkpoint.hpp"
#include "car_stress/group.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/mpi_groups.hpp"
#include "car_stress/options.hpp"
#include "car_stress/recorded_graph.hpp"
#include "car_stress/report.hpp"
#include "car_stress/tally.hpp"
#include "car_stress/transitions.hpp"

namespace car::stress {

class Runner {
 public:
  /// @param checkpoint by the driver; null: none
  Runner(const Options& options, const ChosenDevice& device, const MpiGroups& mpi, int world,
         DriverCheckpoint* checkpoint, Journal& journal, Watchdog& watchdog, Tally& tally,
         Report& report);

  /// Collective; all ranks return together. @throws librun::Error when the library failed, which
  /// ends the run of this rank, whatever the others do.
  void run();

  /// The rank of the whole run that `error` is about, when its communicator counts ranks otherwise;
  /// -1 when there is nothing to translate.
  int culprit(const librun::Error& error);

 private:
  void begin_epoch(std::uint64_t epoch);
  void end_epoch();
  void look_at_holdings();
  CycleNotes run_cycle(std::uint64_t cycle);
  void make_calls(const std::vector<CallPlan>& calls);
  void launch_graphs();
  void while_suspended(const CyclePlan& plan, std::vector<Group*>& suspended);
  void renew_buffers(int group, std::uint64_t renewal);
  std::uint64_t last_renewal(int group) const;
  void kill_if_asked(const CyclePlan& plan, int step);
  bool time_is_up(std::uint64_t done) const;

  const Options& options_;
  const Limits limits_;
  const ChosenDevice& device_;
  const MpiGroups& mpi_;
  Journal& journal_;
  Watchdog& watchdog_;
  Tally& tally_;
  Report& report_;
  Agreement agreement_;
  Caller caller_;
  Transitions transitions_;
  const HoldingsProbe probe_;
  Groups groups_;
  std::vector<std::unique_ptr<RecordedGraph>> graphs_;
  EpochPlan epoch_plan_;
  std::optional<std::uint64_t> epoch_;
  std::uint64_t cycle_ = 0;
  std::uint64_t launches_ = 0;  ///< in this cycle so far
  std::uint64_t hash_ = 0;      ///< of all results that all ranks share
};

}  // namespace car::stress
