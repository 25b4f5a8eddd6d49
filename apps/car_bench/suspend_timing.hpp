// SPDX-License-Identifier: Apache-2.0
// Suspends and resumes between sizes, and keeps the time of each phase.
#pragma once

#include <vector>

#include "car_bench/result.hpp"
#include "librun/librun.hpp"

namespace car::bench {

class SuspendTiming {
 public:
  explicit SuspendTiming(std::vector<librun::Communicator>& comms) : comms_(comms) {}

  /// Every communicator, one cycle. Collective.
  void cycle();
  /// Max over ranks of each phase, in the order they ran.
  const std::vector<PhaseSamples>& phases() const { return phases_; }

 private:
  void keep(const char* transition, const librun::Communicator& comm, librun_transition_t which,
            std::uint64_t total_us);
  void add(const std::string& transition, const std::string& name, double us);

  std::vector<librun::Communicator>& comms_;
  std::vector<PhaseSamples> phases_;
};

}  // namespace car::bench
