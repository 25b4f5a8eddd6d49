// SPDX-License-Identifier: Apache-2.0
#include "ipc/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace librun::ipc {
namespace {

constexpr int kTag = 7;

/// A rank may leave a phase and close its link, or say that it failed, while its record and those
/// that it has seen are still on the way. Long enough for what was sent, short enough for news; and
/// so many looks, for a rank that was off its core meanwhile.
constexpr auto kNewsGrace = std::chrono::milliseconds(30);
constexpr int kNewsLooks = 50;
/// For sends that a peer which has died meanwhile may never take.
constexpr auto kSendGrace = std::chrono::milliseconds(200);

/// Gives way at once, since the ranks may share cores; sleeps when the wait gets long.
class Backoff {
 public:
  void pause() {
    if (++rounds_ < 2000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(rounds_ < 4000 ? 50 : 500));
    }
  }

 private:
  int rounds_ = 0;
};

/// Buffers of messages under way. On a failure they are leaked with their requests: MPI may still
/// write to them.
struct InFlight {
  explicit InFlight(std::size_t world)
      : mine{}, theirs(world), sends(world, MPI_REQUEST_NULL), receives(world, MPI_REQUEST_NULL) {}
  Record mine;
  std::vector<Record> theirs;
  std::vector<MPI_Request> sends;
  std::vector<MPI_Request> receives;
};

}  // namespace

Exchange::Exchange(MPI_Comm comm, Deadline deadline) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(comm, &duplicate, &request), "MPI_Comm_idup");
  Backoff backoff;
  for (int done = 0;;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) break;
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(LIBRUN_TIMEOUT, -1, "not every rank came to duplicate the MPI communicator.",
                  "librun_comm_create and librun_resume_on are collective.");
    backoff.pause();
  }
  comm_ = OwnedComm(duplicate);
  check_mpi(MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(duplicate, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(duplicate, &world_), "MPI_Comm_size");
}

GatherResult Exchange::gather(const Record& mine, Deadline deadline, const Watch& watch) {
  const auto world = static_cast<std::size_t>(world_);
  auto flight = std::make_unique<InFlight>(world);
  flight->mine = mine;
  for (int peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    const auto at = static_cast<std::size_t>(peer);
    check_mpi(MPI_Irecv(flight->theirs[at].data(), kRecordBytes, MPI_BYTE, peer, kTag, comm_.get(),
                        &flight->receives[at]),
              "MPI_Irecv");
    check_mpi(MPI_Isend(flight->mine.data(), kRecordBytes, MPI_BYTE, peer, kTag, comm_.get(),
                        &flight->sends[at]),
              "MPI_Isend");
  }
  flight->theirs[static_cast<std::size_t>(rank_)] = mine;

  GatherResult result;
  Backoff backoff;
  std::optional<PeerEvent> lost;
  Deadline lost_until{};
  int looks = 0;
  Deadline all_here_until = std::chrono::steady_clock::now() + kSendGrace;
  std::vector<bool> arrived(world, false);
  arrived[static_cast<std::size_t>(rank_)] = true;
  for (;;) {
    int all_sent = 0;
    check_mpi(MPI_Testall(world_, flight->sends.data(), &all_sent, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    for (std::size_t peer = 0; peer < world; ++peer) {
      if (arrived[peer]) continue;
      int done = 0;
      check_mpi(MPI_Test(&flight->receives[peer], &done, MPI_STATUS_IGNORE), "MPI_Test");
      arrived[peer] = done != 0;
    }
    const bool all_arrived = std::find(arrived.begin(), arrived.end(), false) == arrived.end();
    if (all_arrived && all_sent) break;

    const auto now = std::chrono::steady_clock::now();
    if (all_arrived) {
      // A send to a peer that has died meanwhile may never end; this phase does not need it.
      if (now < all_here_until && now < deadline) {
        backoff.pause();
        continue;
      }
      result.records = flight->theirs;
      flight.release();
      return result;
    }
    all_here_until = now + kSendGrace;
    if (watch && !lost) {
      lost = watch(arrived);
      lost_until = now + kNewsGrace;
      looks = 0;
    }
    // A peer that is gone but whose record is here has done its part of this phase.
    if (lost && lost->kind == PeerEvent::Kind::lost &&
        arrived[static_cast<std::size_t>(lost->rank)])
      lost.reset();
    const bool given_up = lost && ++looks > kNewsLooks && now >= lost_until;
    if (given_up || now > deadline) {
      if (given_up) result.event = lost;
      for (std::size_t peer = 0; peer < world; ++peer)
        if (!arrived[peer]) result.missing.push_back(static_cast<int>(peer));
      flight.release();
      return result;
    }
    backoff.pause();
  }
  result.records = std::move(flight->theirs);
  return result;
}

void Exchange::tell_late_ranks(const Record& last_words) noexcept {
  if (comm_.get() == MPI_COMM_NULL || !mpi_usable()) return;
  auto* flight = new (std::nothrow) InFlight(static_cast<std::size_t>(world_));
  if (!flight) return;
  flight->mine = last_words;
  for (int peer = 0; peer < world_; ++peer)
    if (peer != rank_)
      MPI_Isend(flight->mine.data(), kRecordBytes, MPI_BYTE, peer, kTag, comm_.get(),
                &flight->sends[static_cast<std::size_t>(peer)]);
}

}  // namespace librun::ipc
