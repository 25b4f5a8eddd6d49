// SPDX-License-Identifier: Apache-2.0
// What lies where in an arena on CUDA.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

inline constexpr std::size_t kMinArenaBytes = std::size_t{2} << 20;
inline constexpr std::size_t kDefaultArenaBytes = std::size_t{64} << 20;
/// What travels whole.
inline constexpr std::size_t kLineBytes = 16;
/// Each thread of an ll kernel has one.
inline constexpr std::uint32_t kMaxLinesPerBlock = kMaxThreads;
/// Announcements travel as lines with 12 bytes of data each.
inline constexpr std::uint32_t kAnnouncementLines = sizeof(Announcement) / 12;
/// Each flag has a place of its own, so that polling one does not disturb another.
inline constexpr std::size_t kFlagBytes = 64;
/// A power of two, so that the counter of steps may wrap. Why eight: see armed_ring.cuh.
inline constexpr std::uint32_t kRingSlots = 8;
/// Two less than the slots: what the first sends of a round write over is of an older one.
inline constexpr std::uint32_t kRoundSteps = 6;
inline constexpr std::uint32_t kMaxRingLines = 1024;

/// An arena is what its owner's peers write into. Every (source, block) has a flag, every (parity,
/// source, block) its own lines of ll, every (slot, source, block) its own armed lines:
///
///   | proof | flags      | lines 0 | lines 1 | ring of inputs | ring of results | staging |
///    64 KiB   n * B * 64   n*B*L*16 each       8*(n-1)*B*A*16 each               the rest
///
/// with n ranks, B = max_blocks, L = lines_per_block, A = ring_lines. Staging is for the stages of
/// `stepped` and for the proof: chunk_bytes as one piece.
///
/// Blocks that wait must all be resident, of all ranks that share a device, with those of the next
/// launch: B is 128 / ranks there.
/// @param max_blocks the user's bound on B; 0: none
inline ArenaLayout make_layout(int world, std::size_t arena_bytes, int ranks_on_device,
                               std::uint32_t max_blocks = 0) {
  constexpr std::size_t kProofBytes = std::size_t{64} << 10;
  constexpr std::size_t kGrain = 512;
  const auto ranks = static_cast<std::size_t>(world);
  const std::size_t sources = std::max<std::size_t>(ranks - 1, 1);
  ArenaLayout layout{};
  std::size_t blocks =
      std::max<std::size_t>(kMaxBlocks / static_cast<std::size_t>(std::max(ranks_on_device, 1)), 1);
  if (max_blocks > 0) blocks = std::min<std::size_t>(blocks, max_blocks);
  // A quarter is for lines of ll, a half for the rings.
  const auto lines_at = [&] { return arena_bytes / 4 / (2 * ranks * blocks * kLineBytes); };
  const auto ring_at = [&] {
    return arena_bytes / 2 / (2 * kRingSlots * sources * blocks * kLineBytes);
  };
  while (blocks > 1 && std::min(lines_at(), ring_at()) < 2 * kWarp) blocks /= 2;
  const auto whole_warps = [&](std::size_t lines, std::uint32_t most) {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(lines / kWarp * kWarp, kWarp, most));
  };
  layout.max_blocks = static_cast<std::uint32_t>(blocks);
  layout.lines_per_block = whole_warps(lines_at(), kMaxLinesPerBlock);
  layout.ring_lines = whole_warps(ring_at(), kMaxRingLines);
  std::uint64_t offset = kProofBytes;
  const auto place = [&](std::uint64_t& at, std::size_t size_bytes) {
    at = offset;
    offset += size_bytes;
  };
  place(layout.flags, ranks * blocks * kFlagBytes);
  for (std::uint64_t& lines : layout.lines)
    place(lines, ranks * blocks * layout.lines_per_block * kLineBytes);
  for (std::uint64_t& ring : layout.rings)
    place(ring, kRingSlots * sources * blocks * layout.ring_lines * kLineBytes);
  layout.chunk_bytes = (arena_bytes - offset) / kGrain * kGrain;
  place(layout.staging[0], layout.chunk_bytes);
  return layout;
}

/// The table of `control.rank`. Seen from its owner's arena, the ring of the k-th rank after the
/// owner is the (k-1)-th of each slot.
inline PeerTable make_peer_table(const ControlBlock& control, const LineWords& armed) {
  const ArenaLayout& layout = control.layout;
  const auto rank = static_cast<int>(control.rank);
  const auto world = static_cast<int>(control.world);
  PeerTable table{};
  table.rank = control.rank;
  table.world = control.world;
  // Another one for each generation, and never that of a closed one.
  table.open_gate = static_cast<std::uint32_t>(control.generation) * 2 + 1;
  table.max_blocks = layout.max_blocks;
  table.parity_bytes = layout.lines[1] - layout.lines[0];
  table.lines_per_block = layout.lines_per_block;
  table.ring_lines = layout.ring_lines;
  table.armed = armed;
  const std::uint64_t lines_source_bytes = layout.max_blocks * layout.lines_per_block * kLineBytes;
  table.ring_source_bytes = layout.max_blocks * layout.ring_lines * kLineBytes;
  table.ring_slot_bytes = static_cast<unsigned>(world - 1) * table.ring_source_bytes;
  table.flags = layout.flags;
  table.staging = layout.staging[0];
  for (int k = 0; k < world; ++k) table.arena[k] = control.arena[(rank + k) % world];
  if (!table.arena[0]) return table;
  for (int k = 1; k < world; ++k) {
    const int peer = (rank + k) % world;
    const auto place = [&](PeerRow* rows, std::uint64_t to, std::uint64_t from) {
      rows[k - 1].to = table.arena[k] + to;
      rows[source_row(world, peer)].from = table.arena[0] + from;
    };
    place(table.lines, layout.lines[0] + static_cast<unsigned>(rank) * lines_source_bytes,
          layout.lines[0] + static_cast<unsigned>(peer) * lines_source_bytes);
    // Seen from there, this rank is the (world - k)-th.
    for (int of = 0; of < 2; ++of)
      place(table.rings[of],
            layout.rings[of] + static_cast<unsigned>(world - k - 1) * table.ring_source_bytes,
            layout.rings[of] + static_cast<unsigned>(k - 1) * table.ring_source_bytes);
  }
  return table;
}

}  // namespace librun::cuda
