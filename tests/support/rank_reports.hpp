// SPDX-License-Identifier: Apache-2.0
// One text from every rank to every rank, with a deadline that tells who is missing.
#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

namespace librun_test {

class RankReports {
 public:
  struct Result {
    std::vector<std::string> texts;  ///< by rank
    std::vector<int> missing;        ///< ranks that did not come in time
  };

  /// Duplicates `comm`. Collective.
  explicit RankReports(MPI_Comm comm);
  ~RankReports();
  RankReports(const RankReports&) = delete;
  RankReports& operator=(const RankReports&) = delete;

  int rank() const { return rank_; }
  int world() const { return world_; }

  /// All ranks call. When a rank is missing the communicator can no longer be used.
  Result exchange(const std::string& mine, std::chrono::milliseconds timeout);

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int world_ = 1;
};

}  // namespace librun_test
