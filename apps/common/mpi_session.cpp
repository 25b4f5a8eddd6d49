// SPDX-License-Identifier: Apache-2.0
#include "common/mpi_session.hpp"

#include <cstdlib>

namespace car {

MpiSession::MpiSession(int* argc, char*** argv) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_);
}

MpiSession::~MpiSession() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Finalize();
}

int MpiSession::agree(int exit_code) const {
  int highest = exit_code;
  MPI_Allreduce(&exit_code, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return highest;
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
