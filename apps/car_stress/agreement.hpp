// SPDX-License-Identifier: Apache-2.0
// How the ranks of a run compare notes, without waiting for ever for one that is gone.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>

namespace car::stress {

/// What a rank brings to the end of a cycle, and what all of them together have.
struct CycleNotes {
  bool wrong = false;
  bool moved = false;
  bool stop = false;
  std::uint64_t hash = 0;  ///< of the results that all ranks share
};

class Agreement {
 public:
  /// @param check called while waiting; throws when a peer is gone, which MPI would not notice
  Agreement(MPI_Comm comm, std::function<void()> check);

  /// Any rank's flags; `wrong` too when the hashes differ. Collective. @throws librun::Error
  CycleNotes combine(const CycleNotes& mine) const;
  /// The text of the lowest rank that has one. Collective. @throws librun::Error
  std::string first_text(const std::string& mine) const;

 private:
  void wait(int status, MPI_Request& request) const;

  MPI_Comm comm_;
  std::function<void()> check_;
};

}  // namespace car::stress
