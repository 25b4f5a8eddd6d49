// SPDX-License-Identifier: Apache-2.0
// MPI handles and return codes.
#pragma once

#include <mpi.h>

#include <string>

#include "kernels/unique_handle.hpp"
#include "librun/error.hpp"

namespace librun::ipc {

/// True between MPI_Init and MPI_Finalize.
inline bool mpi_usable() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// The same, on a thread that may call MPI while others do.
inline bool mpi_usable_on_this_thread() {
  if (!mpi_usable()) return false;
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  return level == MPI_THREAD_MULTIPLE || is_main != 0;
}

/// MPI_Comm_free is collective in the standard's words, so a destructor must not call it: the
/// handle is freed by free_collectively, or left to MPI_Finalize.
struct CommTraits {
  using type = MPI_Comm;
  static type null() noexcept { return MPI_COMM_NULL; }
  static void close(type) noexcept {}
};
using OwnedComm = UniqueHandle<CommTraits>;

inline void free_collectively(OwnedComm& comm) noexcept {
  if (MPI_Comm handle = comm.release(); handle != MPI_COMM_NULL && mpi_usable())
    MPI_Comm_free(&handle);
}

/// @throws Error{mpi} with MPI's own text
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(LIBRUN_MPI, -1, std::string(call) + " failed (" + text + ").");
}

}  // namespace librun::ipc
