// SPDX-License-Identifier: Apache-2.0
// The kernels rely on lines of 16 bytes that arrive whole. Nothing in the memory model of PTX says
// so for memory of a peer, so it is tried.
#include <mpi.h>

#include <array>

#include "lines/line_storm.hpp"
#include "support/job.hpp"

using namespace librun_test;

TEST_CASE("no line of 16 bytes is ever seen half written") {
  StormMemory memory;
  std::array<char, StormMemory::kHandleBytes> mine{};
  std::array<char, StormMemory::kHandleBytes> theirs{};
  if (world() > 1) {
    memory.export_to(mine.data());
    const int next = (rank() + 1) % world();
    const int before = (rank() + world() - 1) % world();
    MPI_Sendrecv(mine.data(), mine.size(), MPI_CHAR, before, 0, theirs.data(), theirs.size(),
                 MPI_CHAR, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memory.open_peer(theirs.data());
  }
  // 1.07 * 10^9 lines of each rank.
  constexpr std::uint32_t kRounds = 8192;
  constexpr int kLaunches = 8;
  std::uint64_t reads = 0;
  for (int launch = 0; launch < kLaunches; ++launch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const StormCounts counts = memory.run(kRounds, launch % 2 == 0 ? 1 : 11);
    CHECK(counts.torn == 0);
    // Or nobody wrote while this rank read, and it proves nothing.
    CHECK(counts.changes > counts.reads / 1000);
    reads += counts.reads;
  }
  CHECK(reads == std::uint64_t{StormMemory::kLines} * kRounds * kLaunches);
  // Nobody frees what a peer has mapped.
  MPI_Barrier(MPI_COMM_WORLD);
}
