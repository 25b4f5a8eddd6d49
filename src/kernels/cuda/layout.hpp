// SPDX-License-Identifier: Apache-2.0
// What lies where in an arena on CUDA.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

inline constexpr std::size_t kMinArenaBytes = std::size_t{2} << 20;
inline constexpr std::size_t kDefaultArenaBytes = std::size_t{64} << 20;
/// The 16 bytes of `ll` that travel together.
inline constexpr std::size_t kLlLineBytes = 16;
inline constexpr std::uint32_t kMaxLinesPerBlock = 512;
/// Announcements travel as lines with 12 bytes of data each.
inline constexpr std::uint32_t kAnnouncementLines = sizeof(Announcement) / 12;
/// Each flag has a place of its own, so that polling one does not disturb another.
inline constexpr std::size_t kFlagBytes = 64;

/// An arena is what its owner's peers write into. Every (parity, source, block) has its own lines,
/// a piece of staging and a piece of result; every (source, block) a flag.
///
///   | proof | flags          | lines 0 | lines 1 | staging 0 | staging 1 | result 0 | result 1 |
///    64 KiB   n * B * 64 B     n*B*L*16             n*B*S                   n*B*S
///
/// with n ranks, B = max_blocks, L = lines_per_block, S = slice_bytes. chunk_bytes is n*B*S: the
/// stages of `stepped` use staging 0 as one piece.
///
/// Blocks that wait must all be resident, of all ranks that share a device: B is 64 / ranks there.
inline ArenaLayout make_layout(int world, std::size_t arena_bytes, int ranks_on_device) {
  constexpr std::size_t kProofBytes = std::size_t{64} << 10;
  constexpr std::size_t kGrain = 512;
  constexpr std::size_t kEnoughForOneBlock = std::size_t{12} << 10;
  const auto ranks = static_cast<std::size_t>(world);
  ArenaLayout layout{};
  std::size_t blocks =
      std::max<std::size_t>(kMaxBlocks / static_cast<std::size_t>(std::max(ranks_on_device, 1)), 1);
  const auto share = [&] {
    const std::size_t flags_bytes = ranks * blocks * kFlagBytes;
    return (arena_bytes - kProofBytes - flags_bytes) / (2 * ranks * blocks);
  };
  while (blocks > 1 && share() < kEnoughForOneBlock) blocks /= 2;
  const std::size_t lines =
      std::clamp<std::size_t>(share() / 4 / kLlLineBytes / 32 * 32, 32, kMaxLinesPerBlock);
  const std::size_t lines_bytes = lines * kLlLineBytes;
  layout.max_blocks = static_cast<std::uint32_t>(blocks);
  layout.lines_per_block = static_cast<std::uint32_t>(lines);
  layout.slice_bytes = (share() - lines_bytes) / 2 / kGrain * kGrain;
  layout.chunk_bytes = ranks * blocks * layout.slice_bytes;
  layout.flags = kProofBytes;
  std::uint64_t offset = kProofBytes + ranks * blocks * kFlagBytes;
  for (std::uint64_t& lines_at : layout.lines) {
    lines_at = offset;
    offset += ranks * blocks * lines_bytes;
  }
  for (std::uint64_t& staging : layout.staging) {
    staging = offset;
    offset += layout.chunk_bytes;
  }
  for (std::uint64_t& result : layout.result) {
    result = offset;
    offset += layout.chunk_bytes;
  }
  return layout;
}

}  // namespace librun::cuda
