// SPDX-License-Identifier: Apache-2.0
// One record from every rank to every rank, over MPI, with a deadline that names who is missing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ipc/link.hpp"
#include "ipc/mpi_raii.hpp"

namespace librun::ipc {

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr std::size_t kRecordBytes = 1280;
using Record = std::array<std::byte, kRecordBytes>;

struct GatherResult {
  std::vector<Record> records;     ///< by rank; complete when ok()
  std::vector<int> missing;        ///< ranks whose record did not come in time
  std::optional<PeerEvent> event;  ///< a peer that was lost, or told us to stop
  bool ok() const { return missing.empty() && !event; }
};

/// What to look at while waiting: the links, when there are any. It is told, by rank, who has done
/// its part already: the loss of those does not matter.
using Watch = std::function<std::optional<PeerEvent>(const std::vector<bool>& arrived)>;

/// Point to point rather than MPI_Allgather, since a collective cannot say who is missing. World is
/// at most 64, so at most 63 small messages each way. Not thread-safe.
class Exchange {
 public:
  Exchange() = default;
  /// Duplicates `comm` and sets MPI_ERRORS_RETURN on the duplicate. Collective.
  /// @throws Error{timeout, mpi}
  Exchange(MPI_Comm comm, Deadline deadline);

  int rank() const { return rank_; }
  int world() const { return world_; }
  MPI_Comm comm() const { return comm_.get(); }

  /// All ranks call. After a result that is not ok() the communicator is never used again but by
  /// tell_late_ranks.
  GatherResult gather(const Record& mine, Deadline deadline, const Watch& watch);

  /// Leaves `last_words` where a rank that comes late to the next gather finds them. Local.
  void tell_late_ranks(const Record& last_words) noexcept;

  /// Collective, while healthy. Without it the communicator is left to MPI_Finalize.
  void free() noexcept { free_collectively(comm_); }

 private:
  OwnedComm comm_;
  int rank_ = 0;
  int world_ = 1;
};

}  // namespace librun::ipc
