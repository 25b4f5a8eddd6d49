// SPDX-License-Identifier: Apache-2.0
// Where the ranks are.
#pragma once

#include <string>
#include <vector>

namespace car {

struct RankPlace {
  std::string host;
  int pid;
};

/// By rank, on every rank. Collective over MPI_COMM_WORLD.
std::vector<RankPlace> gather_places();

}  // namespace car
