// SPDX-License-Identifier: Apache-2.0
// What a launch reads first: the gate, the protocol's counters and the table of peers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arena.hpp"
#include "librun/types.h"

namespace librun {

inline constexpr std::uint32_t kGateClosed = 0;
inline constexpr std::uint32_t kGateOpen = 1;

/// How a launch ended. Anything but ok, rejected and mismatch fails the communicator.
enum class Outcome : std::uint32_t { ok, gate_closed, rejected, mismatch, aborted, timeout, fault };

/// Why one rank refused a call before it touched anything. Travels in the top bits of the epoch.
enum class Reject : std::uint32_t {
  none,
  null_pointer,
  misaligned,
  overlap,
  bad_count,
  bad_dtype,
  bad_op,
  not_registered,
  injected
};

/// Words that host and device both see: the way to stop a wait, and what the launches report.
struct HostWords {
  std::uint32_t abort;    ///< not 0: leave every wait at once
  std::uint32_t outcome;  ///< Outcome of the last launch that was not ok; sticky
  std::uint32_t rank;     ///< the rank that was waited for, or that refused
  std::uint32_t reject;   ///< its Reject
  std::uint64_t step;     ///< the step where that happened
  std::uint64_t caught;   ///< launches that found the gate closed
  std::uint64_t calls;    ///< launches that ran
  /// Where launches do not wait: the first Outcome of this generation that fails the communicator.
  std::uint32_t fatal;
  std::uint32_t fatal_rank;
  std::uint64_t fatal_step;
  /// What the ranks announced when their calls did not match: Announcements, by rank.
  std::byte announced[LIBRUN_MAX_WORLD][kLineDataBytes];
};

/// One registered buffer: where each rank's is mapped here.
struct Slot {
  std::byte* base[LIBRUN_MAX_WORLD];
  std::uint64_t size_bytes;
  std::uint16_t live;
  std::uint16_t staged;  ///< the peers cannot map it: go through the arena
  std::uint16_t number;  ///< of the registration; a graph knows the one that it was made with
  std::uint16_t reserved;
};

/// One per communicator, at an address that never changes, so that graphs may hold it.
struct alignas(64) ControlBlock {
  // The line of the gate.
  std::uint32_t gate;
  std::uint32_t rank;
  std::uint32_t world;
  std::uint32_t spin_us;  ///< how long to spin before giving way; 0 when ranks share cores
  std::uint64_t generation;
  std::uint64_t step;     ///< the last step taken; only launches advance it
  std::uint64_t wait_ns;  ///< deadline of one wait
  HostWords* words;
  std::uint32_t whole_steps;  ///< some rank gives way at each wait; the same on all ranks
  std::uint32_t unused;
  std::uint64_t reserved;

  ArenaLayout layout;
  std::byte* arena[LIBRUN_MAX_WORLD];
  Slot slots[LIBRUN_MAX_BUFFERS];
};
static_assert(offsetof(ControlBlock, layout) == 64, "the gate's line");

}  // namespace librun
