// SPDX-License-Identifier: Apache-2.0
#include "common/hosts.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>

namespace car {
namespace {

/// Fixed in size, for MPI.
struct Wire {
  char host[64];
  char name[64];
  char bus_id[32];
  std::array<unsigned char, 16> uuid;
  int pid;
  int ordinal;
};

template <std::size_t N>
void put(const std::string& text, char (&field)[N]) {
  text.copy(field, N - 1);
}

}  // namespace

std::vector<RankPlace> gather_places(const Device& device) {
  int world = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  const DeviceIdentity identity = device.identity();
  Wire mine{};
  ::gethostname(mine.host, sizeof(mine.host) - 1);
  put(identity.name, mine.name);
  put(identity.bus_id, mine.bus_id);
  mine.uuid = identity.uuid;
  mine.pid = ::getpid();
  mine.ordinal = device.ordinal();
  std::vector<Wire> all(static_cast<std::size_t>(world));
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
  std::vector<RankPlace> places;
  for (const Wire& wire : all)
    places.push_back({wire.host, wire.pid, wire.ordinal, {wire.name, wire.bus_id, wire.uuid}});
  return places;
}

int ranks_on_gpu_of(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& mine = places[static_cast<std::size_t>(rank)];
  if (mine.ordinal < 0) return 0;
  // By UUID: the ordinal of one GPU differs where ranks see different ones.
  return static_cast<int>(std::ranges::count_if(places, [&](const RankPlace& place) {
    return place.ordinal >= 0 && place.host == mine.host && place.device.uuid == mine.device.uuid;
  }));
}

bool any_gpu_is_shared(const std::vector<RankPlace>& places) {
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank)
    if (ranks_on_gpu_of(places, rank) > 1) return true;
  return false;
}

}  // namespace car
