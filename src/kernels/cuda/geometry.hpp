// SPDX-License-Identifier: Apache-2.0
// How many blocks and threads a launch takes: a function of what all ranks know alike, since blocks
// and threads of the same number work together.
#pragma once

#include <algorithm>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/layout.hpp"
#include "kernels/dtype.hpp"

namespace librun::cuda {

struct Spread {
  std::uint32_t n_blocks;
  std::uint32_t n_threads;
  std::uint64_t lines = 0;       ///< KernelArgs::lines
  std::uint32_t fair_lines = 0;  ///< KernelArgs::fair_lines
};

/// What bounds a launch, from the layout of the first bring-up and for life: a call takes the same
/// grid in a graph of any age and out of one. A later layout may have place for less, which kernels
/// heed.
struct GridBounds {
  std::uint32_t max_blocks;
  std::uint32_t lines_per_block;
  std::uint32_t ring_lines;
};
inline GridBounds bounds_of(const ArenaLayout& layout) {
  return {layout.max_blocks, layout.lines_per_block, layout.ring_lines};
}

/// Of kernels without teams, which only move bytes through this device's own memory.
inline Spread plain_spread(std::uint64_t size_bytes, std::uint32_t max_blocks) {
  constexpr std::uint64_t kMaxCopyBlocks = 64;
  constexpr std::uint64_t kBytesPerBlock = kPlainThreads * kLineBytes;
  const std::uint64_t most =
      max_blocks > 0 ? std::min<std::uint64_t>(max_blocks, kMaxCopyBlocks) : kMaxCopyBlocks;
  const std::uint64_t wanted = (size_bytes + kBytesPerBlock - 1) / kBytesPerBlock;
  return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, most)), kPlainThreads};
}

/// @pre args.count > 0
inline Spread spread_of(const AllReduceArgs& args, int world, const GridBounds& bounds) {
  // Measured at 2 ranks on one H200, docs/measurements/h200-kernels.md: fewer blocks are better for
  // ll, and one_shot does not mind.
  constexpr std::uint64_t kLinesPerBlock = 128;
  const auto ceil = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const std::uint64_t element = element_bytes(args.dtype);
  const bool ll = args.body == Body::ll;
  const std::uint64_t line_bytes = !ll ? kLineBytes : element == 8 ? 8 : 12;
  const std::uint64_t lines = ceil(args.count * element, line_bytes);
  const bool sliced = args.body == Body::two_shot || args.body == Body::zero_copy;
  const std::uint64_t parts = sliced ? ceil(lines, static_cast<std::uint64_t>(world)) : lines;
  const std::uint64_t room = ll ? bounds.lines_per_block : bounds.ring_lines;
  const std::uint64_t most_threads = std::min<std::uint64_t>(room, kMaxThreads);
  const std::uint64_t n_blocks = std::clamp<std::uint64_t>(
      ceil(parts, ll ? most_threads : std::min(room, kLinesPerBlock)), 1, bounds.max_blocks);
  const std::uint64_t fair = ceil(parts, n_blocks);
  const std::uint64_t n_threads =
      std::clamp<std::uint64_t>(ceil(fair, kWarp) * kWarp, kWarp, most_threads);
  return {static_cast<std::uint32_t>(n_blocks), static_cast<std::uint32_t>(n_threads), lines,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(fair, kMaxRingLines))};
}

}  // namespace librun::cuda
