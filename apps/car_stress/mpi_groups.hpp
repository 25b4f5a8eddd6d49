// SPDX-License-Identifier: Apache-2.0
// All MPI communicators of a run, made at its start: later on a rank may be gone, and MPI would
// wait for it for ever.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "car_stress/plan.hpp"

namespace car::stress {

class MpiGroups {
 public:
  /// Collective.
  MpiGroups(MPI_Comm base, std::uint64_t seed);
  /// Collective; not in a destructor, since after a failure the peers may not come.
  void free();

  /// MPI_COMM_NULL on ranks that are not among the members.
  MPI_Comm of(Members members) const { return at(members).usual; }
  /// The same ranks in the same order.
  MPI_Comm another(Members members) const { return at(members).another; }
  /// The same ranks in another order.
  MPI_Comm wrong_order(Members members) const { return at(members).wrong; }
  /// For the agreement at the end of a cycle.
  MPI_Comm control() const { return control_; }

 private:
  struct Comms {
    MPI_Comm usual, another, wrong;
  };
  const Comms& at(Members members) const { return comms_[static_cast<std::size_t>(members)]; }

  std::array<Comms, 5> comms_;
  MPI_Comm control_;
};

}  // namespace car::stress
