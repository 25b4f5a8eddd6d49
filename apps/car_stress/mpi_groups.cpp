// SPDX-License-Identifier: Apache-2.0
#include "car_stress/mpi_groups.hpp"

namespace car::stress {
namespace {

struct Place {
  int color;
  int key;
};

Place place_of(Members members, int rank, int world, std::uint64_t seed) {
  switch (members) {
    case Members::reversed:
      return {0, -rank};
    case Members::halves:
      return {2 * rank < world ? 0 : 1, rank};
    case Members::parity:
      return {rank % 2, rank};
    case Members::without_one: {
      const int left_out = static_cast<int>(seed % static_cast<std::uint64_t>(world));
      return {rank == left_out ? MPI_UNDEFINED : 0, rank};
    }
    case Members::world:
      break;
  }
  return {0, rank};
}

void free_comm(MPI_Comm& comm) {
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

}  // namespace

MpiGroups::MpiGroups(MPI_Comm base, std::uint64_t seed) {
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(base, &rank);
  MPI_Comm_size(base, &world);
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    const Place place = place_of(static_cast<Members>(i), rank, world, seed);
    Comms& comms = comms_[i];
    MPI_Comm_split(base, place.color, place.key, &comms.usual);
    MPI_Comm_split(base, place.color, place.key, &comms.another);
    MPI_Comm_split(base, place.color, -place.key, &comms.wrong);
  }
  MPI_Comm_dup(base, &control_);
  MPI_Comm_set_errhandler(control_, MPI_ERRORS_RETURN);
}

void MpiGroups::free() {
  for (Comms& comms : comms_) {
    free_comm(comms.usual);
    free_comm(comms.another);
    free_comm(comms.wrong);
  }
  free_comm(control_);
}

}  // namespace car::stress
