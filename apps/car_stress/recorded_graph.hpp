// SPDX-License-Identifier: Apache-2.0
// A graph of the run with buffers of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "car_stress/caller.hpp"
#include "car_stress/group.hpp"
#include "car_stress/plan.hpp"
#include "librun/librun.hpp"

namespace car::stress {

class RecordedGraph {
 public:
  /// Allocates, registers when the algorithm asks for it or the plan says so, and records.
  /// Collective over the group.
  RecordedGraph(int index, Group& group, const GraphPlan& plan, Journal& journal);

  /// Fills all inputs afresh, replays, checks all results. Collective over the group.
  void launch(std::uint64_t seed);
  /// A launch while suspended must be refused and touch nothing. Local.
  void expect_refusal();
  /// Collective over the group.
  void close();

  Group& group() { return group_; }
  const std::string& name() const { return name_; }

 private:
  void allocate(std::size_t size_bytes, bool registered);
  std::uint64_t seed_of(const CallPlan& call, std::uint64_t seed) const;

  std::string name_;
  Group& group_;
  GraphPlan plan_;
  Journal& journal_;
  DeviceBuffer plain_;
  std::byte* memory_ = nullptr;
  librun_buffer_t registration_{};
  std::vector<CallBuffers> buffers_;
  librun::Graph graph_;
};

}  // namespace car::stress
