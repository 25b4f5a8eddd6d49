// SPDX-License-Identifier: Apache-2.0
#include "common/mpi_session.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace car {

MpiSession::MpiSession(int* argc, char*** argv) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &world_);
}

MpiSession::~MpiSession() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  MPI_Comm_free(&comm_);
  MPI_Finalize();
}

int MpiSession::agree(int exit_code) const {
  return settle(exit_code, std::chrono::hours(24 * 365))->exit_code;
}

std::optional<MpiSession::Verdict> MpiSession::settle(int exit_code,
                                                      std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const Verdict mine{exit_code, rank_};
  Verdict all = mine;
  MPI_Request request;
  MPI_Iallreduce(&mine, &all, 1, MPI_2INT, MPI_MAXLOC, comm_, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return all;
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

int MpiSession::fail(const std::string& tool, const std::string& text, int exit_code) const {
  constexpr std::chrono::milliseconds kPatience{1000};
  const auto verdict = settle(exit_code, kPatience);
  if (!verdict || verdict->rank == rank_) {
    std::fprintf(stderr, "%s: %s\n", tool.c_str(), text.c_str());
    std::fflush(stderr);
  }
  if (!verdict) MPI_Abort(MPI_COMM_WORLD, exit_code);
  return verdict ? verdict->exit_code : exit_code;
}

std::string wrong_launcher(int world) {
  const char* const allowed = std::getenv("LIBRUN_ALLOW_SINGLETONS");
  if (world != 1 || (allowed && std::string(allowed) == "1")) return {};
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const char* const value = std::getenv(name);
    const int launched = value ? std::atoi(value) : 1;
    if (launched > 1)
      return "launched as " + std::to_string(launched) + " ranks (" + name +
             "), but MPI sees 1: built against another MPI than the launcher's? "
             "LIBRUN_ALLOW_SINGLETONS=1 runs anyway";
  }
  return {};
}

}  // namespace car
