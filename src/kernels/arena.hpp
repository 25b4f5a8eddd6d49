// SPDX-License-Identifier: Apache-2.0
// What lies where in the memory that a rank shares with its peers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "librun/types.h"

namespace librun {

inline constexpr std::size_t kPageBytes = 4096;
/// Lines of one parity: with 56 data bytes each, `ll` carries up to 3584 bytes.
inline constexpr std::size_t kLinesPerParity = 64;
inline constexpr std::size_t kLineDataBytes = 56;
inline constexpr std::size_t kLlMaxBytes = kLinesPerParity * kLineDataBytes;

/// 64 bytes that travel together. The reader takes the data once it has seen the epoch.
///
///   byte  0                                              56        64
///         | data: payload of ll, or an announcement      | epoch   |
///
///   epoch  | 6 bits reject | 10 bits generation | 48 bits step |
struct alignas(64) Line {
  std::byte data[kLineDataBytes];
  std::uint64_t epoch;
};
static_assert(sizeof(Line) == 64);

inline constexpr int kRejectShift = 58;
inline constexpr std::uint64_t kRejectMask = ~std::uint64_t{0} << kRejectShift;

inline constexpr std::uint64_t kStepMask = (std::uint64_t{1} << 48) - 1;

/// The epoch of `step` in `generation`; memory of an older generation never matches.
constexpr std::uint64_t make_epoch(std::uint64_t generation, std::uint64_t step) {
  return (generation & 0x3ff) << 48 | (step & kStepMask);
}
/// Leaves out a step of 0, which a line that nobody has written yet holds, and the one behind it,
/// so that parities alternate.
constexpr std::uint64_t step_after(std::uint64_t step) {
  return ((step + 1) & kStepMask) == 0 ? step + 3 : step + 1;
}

/// First page: the proof of mappings. Peers read the nonce and answer in their own word.
struct ProofPage {
  std::uint64_t nonce;
  std::uint64_t unused[7];
  std::uint64_t answers[LIBRUN_MAX_WORLD];
};
static_assert(sizeof(ProofPage) <= kPageBytes);

/// Offsets in bytes from the start of the arena. Parity 0 and 1 alternate from step to step. On the
/// host:
///
///   | proof | lines 0 | lines 1 | staging 0 | staging 1 | result 0 | result 1 |
///     4 KiB   4 KiB     4 KiB     chunk       chunk       slice      slice
///
/// The layout on CUDA is drawn in cuda/layout.hpp.
struct ArenaLayout {
  std::uint64_t lines[2];
  std::uint64_t staging[2];
  std::uint64_t result[2];
  std::uint64_t chunk_bytes;  ///< of one staging area
  std::uint64_t slice_bytes;  ///< of one result area: holds chunk_bytes / world, rounded up
  std::uint64_t flags;        ///< CUDA only, as all that follows
  std::uint64_t rings[2];     ///< of armed lines: inputs, results
  std::uint32_t max_blocks;
  std::uint32_t lines_per_block;
  std::uint32_t ring_lines;  ///< of each slot, source and block
};

inline constexpr std::size_t kMinArenaBytes = std::size_t{64} << 10;

/// @pre arena_bytes >= kMinArenaBytes, a multiple of kPageBytes; 1 <= world <= LIBRUN_MAX_WORLD
constexpr ArenaLayout make_arena_layout(int world, std::size_t arena_bytes) {
  constexpr auto page_down = [](std::size_t bytes) { return bytes / kPageBytes * kPageBytes; };
  const auto ranks = static_cast<std::size_t>(world);
  const std::size_t half = (arena_bytes - 3 * kPageBytes) / 2;
  ArenaLayout layout{};
  layout.chunk_bytes = page_down((half - 2 * kPageBytes) / (ranks + 1) * ranks);
  if (layout.chunk_bytes < kPageBytes) layout.chunk_bytes = kPageBytes;
  layout.slice_bytes = page_down(layout.chunk_bytes / ranks + 64 + kPageBytes - 1);
  std::uint64_t offset = kPageBytes;
  for (int parity = 0; parity < 2; ++parity, offset += kPageBytes) layout.lines[parity] = offset;
  for (int parity = 0; parity < 2; ++parity, offset += layout.chunk_bytes)
    layout.staging[parity] = offset;
  for (int parity = 0; parity < 2; ++parity, offset += layout.slice_bytes)
    layout.result[parity] = offset;
  return layout;
}

/// The least arena whose layout has staging areas of `chunk_bytes`.
constexpr std::size_t arena_bytes_for(int world, std::size_t chunk_bytes) {
  std::size_t arena_bytes = kMinArenaBytes;
  while (make_arena_layout(world, arena_bytes).chunk_bytes < chunk_bytes) arena_bytes += kPageBytes;
  return arena_bytes;
}

}  // namespace librun
