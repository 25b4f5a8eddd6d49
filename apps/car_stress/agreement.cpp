// SPDX-License-Identifier: Apache-2.0
#include "car_stress/agreement.hpp"

#include <sched.h>

#include <array>
#include <chrono>

#include "librun/error.hpp"

namespace car::stress {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{5};
constexpr std::size_t kTextBytes = 512;

}  // namespace

Agreement::Agreement(MPI_Comm comm, std::function<void()> check)
    : comm_(comm), check_(std::move(check)) {}

void Agreement::wait(int status, MPI_Request& request) const {
  auto next_check = std::chrono::steady_clock::now() + kCheckInterval;
  for (int done = 0; status == MPI_SUCCESS; sched_yield()) {
    status = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    if (std::chrono::steady_clock::now() < next_check) continue;
    check_();
    next_check += kCheckInterval;
  }
  if (status != MPI_SUCCESS)
    throw librun::Error(LIBRUN_MPI, -1, "the agreement of the ranks failed in MPI.");
}

CycleNotes Agreement::combine(const CycleNotes& mine) const {
  const std::array<std::uint64_t, 5> in{mine.wrong, mine.moved, mine.stop, mine.hash, ~mine.hash};
  std::array<std::uint64_t, 5> out{};
  MPI_Request request{};
  wait(MPI_Iallreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_UINT64_T, MPI_MAX,
                      comm_, &request),
       request);
  const bool same_hash = out[3] == ~out[4];
  return {out[0] != 0 || !same_hash, out[1] != 0, out[2] != 0, out[3]};
}

std::string Agreement::first_text(const std::string& mine) const {
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &world);
  const int have = mine.empty() ? world : rank;
  int lowest = world;
  MPI_Request request{};
  wait(MPI_Iallreduce(&have, &lowest, 1, MPI_INT, MPI_MIN, comm_, &request), request);
  if (lowest == world) return {};
  std::array<char, kTextBytes> text{};
  if (rank == lowest) mine.copy(text.data(), kTextBytes - 1);
  wait(MPI_Ibcast(text.data(), static_cast<int>(kTextBytes), MPI_CHAR, lowest, comm_, &request),
       request);
  return text.data();
}

}  // namespace car::stress
