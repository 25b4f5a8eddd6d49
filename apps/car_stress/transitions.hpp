// SPDX-License-Identifier: Apache-2.0
// Suspends and resumes the communicators of a run in every way there is, and checks that what must
// be gone is gone and that what must be there again is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "car_stress/fake_checkpoint.hpp"
#include "car_stress/group.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/mpi_groups.hpp"
#include "car_stress/plan.hpp"
#include "car_stress/tally.hpp"

namespace car::stress {

using Groups = std::vector<std::unique_ptr<Group>>;

class Transitions {
 public:
  /// @param real called while everything is suspended; empty: no checkpoint by the driver
  Transitions(Device& device, const MpiGroups& mpi, bool fake_checkpoint,
              std::function<void()> real, Journal& journal, Tally& tally)
      : mpi_(mpi),
        fake_(fake_checkpoint),
        real_(std::move(real)),
        journal_(journal),
        tally_(tally),
        checkpoint_(device) {}

  /// Runs the transition of `plan`. Collective. @throws librun::Error
  /// @param meanwhile called with the suspended groups between suspend and resume
  /// @return mappings of this rank that came back elsewhere
  int run(Groups& groups, const CyclePlan& plan,
          const std::function<void(std::vector<Group*>&)>& meanwhile);

  /// Gives back the addresses that fake checkpoints took.
  void vacate_all() { checkpoint_.vacate_all(); }

 private:
  /// What a group had before it was suspended.
  struct Before {
    std::vector<librun_mapping_t> mappings;
    std::uint64_t contents = 0;
    std::uint64_t registered = 0;
  };

  std::vector<Group*> affected(Groups& groups, const CyclePlan& plan) const;
  void remember(const std::vector<Group*>& groups);
  void suspend(std::vector<Group*> groups, const CyclePlan& plan);
  void resume(std::vector<Group*> groups, const CyclePlan& plan);
  void resume_one(Group& group, const CyclePlan& plan);
  void check_suspended(const std::vector<Group*>& groups, bool everything);
  void occupy(const std::vector<Group*>& groups);
  void checkpoint(const std::vector<Group*>& groups);
  void check_lost(const std::vector<Group*>& groups);
  int check_resumed(const std::vector<Group*>& groups);
  template <class Action>
  void timed(Durations& durations, Action&& action);

  const MpiGroups& mpi_;
  const bool fake_;
  const std::function<void()> real_;
  Journal& journal_;
  Tally& tally_;
  FakeCheckpoint checkpoint_;
  std::map<Group*, Before> before_;
  std::uint64_t lost_before_ = 0;
  std::uint64_t fragile_ = 0;  ///< slots that the checkpoint is expected to make staged
};

}  // namespace car::stress
