// SPDX-License-Identifier: Apache-2.0
// A life with every collective call in it, up to the call that fails.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "librun/librun.hpp"
#include "support/device.hpp"

namespace librun_test {

/// How a life ended.
struct Ending {
  std::string call;  ///< the one that failed, "" when none did
  librun_status_t status = LIBRUN_OK;
  int culprit = -1;
  std::string text;
  std::chrono::milliseconds elapsed{0};  ///< of that call

  /// Keeps what the library said last.
  static Ending of(const std::string& call, librun_status_t status,
                   std::chrono::milliseconds elapsed = {});
  std::string describe() const;
};

class Life {
 public:
  /// @param in_step the ranks wait for each other before every call, so that they are in the same
  explicit Life(MPI_Comm mpi, bool in_step = false) : mpi_(mpi), in_step_(in_step) {
    MPI_Comm_size(mpi, &world_);
  }
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// create, register, sums around a suspend and a resume, unregister, close; or, for a fault in
  /// all_reduce, the sum of an algorithm that has phases.
  /// @param until "": to the end, otherwise ends before this call
  Ending run(bool stepped, const std::string& until = "");

  /// A barrier, unless one of the ranks that it needs dies behind it: what MPI has under way of a
  /// rank ends with that. @return false: the communicator failed meanwhile
  bool meet() const;

  librun_comm_t comm() const { return comm_; }
  librun_state_t state() const;
  librun_status_t suspend() { return librun_suspend(comm_, -1); }
  librun_status_t resume() { return librun_resume(comm_, -1); }
  librun_status_t resume_on_same() { return librun_resume_on(comm_, mpi_, -1); }
  librun_status_t sum();
  /// By call, the longest of each.
  const std::map<std::string, std::chrono::milliseconds>& elapsed() const { return elapsed_; }
  /// All uses name `cause`, and the communicator closes. @return what is wrong, "" when nothing is
  std::string check_failed(const std::string& cause);

 private:
  librun_status_t create(bool stepped);
  librun_status_t register_one();

  MPI_Comm mpi_;
  bool in_step_;
  int world_ = 1;
  librun_comm_t comm_{};
  librun_buffer_t buffer_{};
  std::map<std::string, std::chrono::milliseconds> elapsed_;
};

}  // namespace librun_test
