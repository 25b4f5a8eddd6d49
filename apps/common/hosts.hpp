// SPDX-License-Identifier: Apache-2.0
// Where the ranks are.
#pragma once

#include <string>
#include <vector>

#include "common/device_memory.hpp"

namespace car {

struct RankPlace {
  std::string host;
  int pid = 0;
  int ordinal = -1;  ///< of its GPU; -1 on the host
  DeviceIdentity device;
};

/// By rank, on every rank. Collective over MPI_COMM_WORLD.
std::vector<RankPlace> gather_places(const Device& device);

/// How many ranks use the GPU that `rank` uses, itself included; 0 on the host.
int ranks_on_gpu_of(const std::vector<RankPlace>& places, int rank);
bool any_gpu_is_shared(const std::vector<RankPlace>& places);

}  // namespace car
