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
  std::uint64_t fair_lines = 0;  ///< KernelArgs::fair_lines
};

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
inline Spread spread_of(const AllReduceArgs& args, int world, const ArenaLayout& layout) {
  // Measured at 2 ranks on one H200, docs/measurements/h200-kernels.md: fewer blocks are better for
  // ll, and one_shot does not mind.
  constexpr std::uint64_t kLlLinesPerBlock = 256;
  constexpr std::uint64_t kLinesPerBlock = 128;
  const auto ceil = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const std::uint64_t element = element_bytes(args.dtype);
  const bool ll = args.body == Body::ll;
  const std::uint64_t line_bytes = !ll ? kLineBytes : element == 8 ? 8 : 12;
  std::uint64_t lines = ceil(args.count * element, line_bytes);
  if (args.body == Body::two_shot || args.body == Body::zero_copy)
    lines = ceil(lines, static_cast<std::uint64_t>(world));
  const std::uint64_t most_threads =
      std::min<std::uint64_t>(ll ? layout.lines_per_block : layout.ring_lines, kMaxThreads);
  const std::uint64_t n_blocks = std::clamp<std::uint64_t>(
      ceil(lines, ll ? kLlLinesPerBlock : kLinesPerBlock), 1, layout.max_blocks);
  const std::uint64_t fair = ceil(lines, n_blocks);
  const std::uint64_t n_threads =
      std::clamp<std::uint64_t>(ceil(fair, kWarp) * kWarp, kWarp, most_threads);
  return {static_cast<std::uint32_t>(n_blocks), static_cast<std::uint32_t>(n_threads), fair};
}

}  // namespace librun::cuda
