// SPDX-License-Identifier: Apache-2.0
// One communicator of the run with its registered buffers, as one rank sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "car_stress/mpi_groups.hpp"
#include "car_stress/plan.hpp"
#include "car_stress/registered_pair.hpp"
#include "car_stress/watchdog.hpp"
#include "common/device_choice.hpp"
#include "librun/librun.hpp"

namespace car::stress {

class Group {
 public:
  /// Collective over its members; on other ranks the group is there, and does nothing.
  Group(int index, const GroupPlan& plan, const MpiGroups& mpi, const ChosenDevice& device,
        Watchdog& watchdog);
  /// Local.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_member() const { return static_cast<bool>(comm_); }
  librun::Communicator& comm() { return comm_; }
  Device& device() { return device_; }
  /// What all its calls are ordered on.
  void* stream() const { return stream_.get(); }
  const GroupPlan& plan() const { return plan_; }
  /// "comm 1 (halves, two_shot)"
  const std::string& name() const { return name_; }
  /// In this communicator.
  int rank() const { return rank_; }
  int world() const { return world_; }
  /// Of the whole run; -1 when there is no such rank here.
  int run_rank(int rank) const;
  /// Only the world itself holds the same results on all ranks of the run.
  bool spans_the_run() const {
    return plan_.members == Members::world || plan_.members == Members::reversed;
  }

  /// Null while no buffers are registered.
  RegisteredPair* registered() { return registered_.get(); }
  /// Collective over the members.
  void register_buffers(Group& lender, std::size_t each_bytes, Random random);
  /// Collective while active, local while suspended.
  void drop_buffers();
  /// Collective over the members. @throws librun::Error also when the communicator has failed
  void close();

 private:
  GroupPlan plan_;
  std::string name_;
  Device& device_;
  Watchdog& watchdog_;
  DeviceStream stream_;
  librun::Communicator comm_;
  std::unique_ptr<RegisteredPair> registered_;
  int rank_ = -1;
  int world_ = 0;
  std::vector<int> run_ranks_;  ///< by rank of this communicator
};

}  // namespace car::stress
