// SPDX-License-Identifier: Apache-2.0
#include "support/rank_reports.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <thread>

namespace librun_test {
namespace {

constexpr int kTag = 86;
constexpr std::size_t kTextBytes = 2000;
using Text = std::array<char, kTextBytes>;

/// Yields first, since the ranks may share cores, then sleeps.
void pause(int round) {
  if (round < 1000)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

RankReports::RankReports(MPI_Comm comm) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &world_);
}

RankReports::~RankReports() { MPI_Comm_free(&comm_); }

RankReports::Result RankReports::exchange(const std::string& mine,
                                          std::chrono::milliseconds timeout) {
  const auto world = static_cast<std::size_t>(world_);
  Text out{};
  mine.copy(out.data(), kTextBytes - 1);
  std::vector<Text> in(world);
  std::vector<MPI_Request> requests;
  std::vector<int> arrived(world, 0);
  std::vector<MPI_Request> receives(world, MPI_REQUEST_NULL);
  in[static_cast<std::size_t>(rank_)] = out;
  for (int peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    const auto at = static_cast<std::size_t>(peer);
    MPI_Irecv(in[at].data(), kTextBytes, MPI_CHAR, peer, kTag, comm_, &receives[at]);
    requests.emplace_back();
    MPI_Isend(out.data(), kTextBytes, MPI_CHAR, peer, kTag, comm_, &requests.back());
  }

  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int round = 0;; ++round) {
    int sent = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &sent, MPI_STATUSES_IGNORE);
    for (std::size_t peer = 0; peer < world; ++peer)
      if (!arrived[peer]) MPI_Test(&receives[peer], &arrived[peer], MPI_STATUS_IGNORE);
    const bool all = std::count(arrived.begin(), arrived.end(), 0) == 0;
    if ((all && sent) || std::chrono::steady_clock::now() > deadline) break;
    pause(round);
  }

  Result result;
  for (std::size_t peer = 0; peer < world; ++peer) {
    if (!arrived[peer]) result.missing.push_back(static_cast<int>(peer));
    result.texts.emplace_back(arrived[peer] ? in[peer].data() : "");
  }
  return result;
}

}  // namespace librun_test
