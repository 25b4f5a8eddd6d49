// SPDX-License-Identifier: Apache-2.0
// MPI from the first to the last line of a tool.
#pragma once

#include <mpi.h>

#include <chrono>
#include <optional>
#include <string>

namespace car {

/// Owns MPI_Init and MPI_Finalize.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int world() const { return world_; }
  bool is_rank0() const { return rank_ == 0; }

  /// The highest code of all ranks, on all ranks. Collective.
  int agree(int exit_code) const;

  struct Verdict {
    int exit_code;  ///< the highest of all ranks
    int rank;       ///< the lowest rank that has it
  };
  /// The same for a rank that failed and does not know whether its peers can come: nothing when
  /// they did not within `limit`.
  std::optional<Verdict> settle(int exit_code, std::chrono::milliseconds limit) const;
  /// For a tool that an error ends: one rank speaks when all ranks end; a rank whose peers do not
  /// come speaks and ends the job. @return what the process ends with
  int fail(const std::string& tool, const std::string& text, int exit_code) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;  // a rank that settles must not meet MPI_COMM_WORLD's traffic
  int rank_ = 0;
  int world_ = 1;
};

/// When the launcher started several ranks but MPI sees one, what is wrong; otherwise "". That
/// happens when the program was built against another MPI than the launcher's.
std::string wrong_launcher(int world);

}  // namespace car
