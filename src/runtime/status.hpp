// SPDX-License-Identifier: Apache-2.0
// What the communicators of this process show of themselves: to checkpoint_blockers() and, through
// the status file, to tools. Kept apart from them, so that looking never waits for a call.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "librun/types.h"
#include "runtime/status_file.hpp"

namespace librun {

struct CommunicatorStatus {
  struct Peer {
    int rank;
    std::uint64_t mappings;
    std::uint64_t size_bytes;
  };
  /// A slot whose memory here can be mapped by peers only until the next checkpoint.
  struct FragileSlot {
    int slot;
    std::uint64_t size_bytes;
  };

  std::uint64_t identity = 0;
  int rank = -1;
  int world = 0;
  std::string device;
  librun_state_t state = LIBRUN_CLOSED;
  std::string transition;  ///< "" or what is under way: "resume"
  std::uint64_t generation = 0;
  std::uint64_t registered_buffers = 0;
  std::uint64_t staged_slots = 0;
  std::uint64_t lost_slots = 0;
  std::vector<Peer> peers;  ///< whose memory is mapped here
  std::vector<FragileSlot> fragile_slots;
  std::vector<std::string> obstacles;  ///< of its device, for life
};

/// What hinders a checkpoint. @param left_mappings mappings that nobody closes any more
std::vector<std::string> blockers_of(const std::vector<CommunicatorStatus>& communicators,
                                     std::uint64_t left_mappings);
/// What a checkpoint changes for good.
std::vector<std::string> notes_of(const std::vector<CommunicatorStatus>& communicators);

/// One per process; a child of fork starts with an empty one. Thread-safe.
class StatusBoard {
 public:
  static StatusBoard& instance();

  /// Opens the status file on the first call, and rewrites it. `state` is read last, so that a
  /// failure noted meanwhile is not lost.
  void show(const void* owner, CommunicatorStatus status,
            const std::atomic<librun_state_t>& state) noexcept;
  /// No-op for an owner that shows nothing.
  void show_failed(const void* owner) noexcept;
  void remove(const void* owner) noexcept;
  /// Mappings that are left to the end of the process.
  void leave_mappings(std::uint64_t count) noexcept;

  std::vector<std::string> blockers() const;
  std::vector<std::string> notes() const;

 private:
  std::vector<CommunicatorStatus> in_order() const;
  void rewrite() noexcept;

  struct Entry {
    std::uint64_t number;  ///< order of creation
    CommunicatorStatus status;
  };
  mutable std::mutex mutex_;
  std::map<const void*, Entry> entries_;
  std::uint64_t next_number_ = 0;
  std::uint64_t left_mappings_ = 0;
  StatusFile file_;
};

}  // namespace librun
