// SPDX-License-Identifier: Apache-2.0
// Test cases that go wrong on one rank, for harness_test.sh.
#include <mpi.h>

#include "support/catch.hpp"

namespace {

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

}  // namespace

TEST_CASE("a check fails on rank 1", "[.][check]") {
  INFO("the value is 42");
  CHECK(rank() != 1);
}

TEST_CASE("rank 1 leaves before a barrier", "[.][require]") {
  REQUIRE(rank() != 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("all ranks pass", "[.][pass]") {
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == 3);
}
