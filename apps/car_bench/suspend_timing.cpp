// SPDX-License-Identifier: Apache-2.0
#include "car_bench/suspend_timing.hpp"

#include <mpi.h>

#include <algorithm>

namespace car::bench {

void SuspendTiming::cycle() {
  for (librun::Communicator& comm : comms_) {
    MPI_Barrier(MPI_COMM_WORLD);
    comm.suspend();
    keep("suspend", comm, LIBRUN_TRANSITION_SUSPEND, comm.stats().last_suspend_us);
    MPI_Barrier(MPI_COMM_WORLD);
    comm.resume();
    keep("resume", comm, LIBRUN_TRANSITION_RESUME, comm.stats().last_resume_us);
  }
}

void SuspendTiming::keep(const char* transition, const librun::Communicator& comm,
                         librun_transition_t which, std::uint64_t total_us) {
  const auto phases = comm.phases(which);
  for (const librun_phase_t& phase : phases)
    add(transition, phase.name, static_cast<double>(phase.elapsed_us));
  add(transition, "total", static_cast<double>(total_us));
}

void SuspendTiming::add(const std::string& transition, const std::string& name, double us) {
  double slowest = us;
  MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const auto same = [&](const PhaseSamples& phase) {
    return phase.transition == transition && phase.name == name;
  };
  auto phase = std::find_if(phases_.begin(), phases_.end(), same);
  if (phase == phases_.end()) phase = phases_.insert(phases_.end(), {transition, name, {}});
  phase->us.push_back(slowest);
}

}  // namespace car::bench
