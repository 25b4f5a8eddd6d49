// SPDX-License-Identifier: Apache-2.0
// Memory that processes share without MPI, which cannot be used once one of them is gone.
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace librun_test {

/// One T of zeros that all ranks of a communicator see. Nothing of it is in a file system.
template <class T>
class Board {
 public:
  /// Collective.
  explicit Board(MPI_Comm mpi) {
    int rank = 0;
    MPI_Comm_rank(mpi, &rank);
    int place[2] = {::getpid(), -1};
    int fd = -1;
    if (rank == 0) {
      fd = ::memfd_create("board", MFD_CLOEXEC);
      if (::ftruncate(fd, sizeof(T)) != 0) fd = -1;
      place[1] = fd;
    }
    MPI_Bcast(place, 2, MPI_INT, 0, mpi);
    if (rank != 0) {
      const std::string path =
          "/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1]);
      fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    }
    void* memory =
        fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot share memory between the ranks");
    board_ = static_cast<T*>(memory);
    MPI_Barrier(mpi);
  }
  T* operator->() const { return board_; }

 private:
  T* board_;
};

}  // namespace librun_test
