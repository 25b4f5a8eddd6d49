// SPDX-License-Identifier: Apache-2.0
// Which part of a chunk each rank reduces.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/arena.hpp"

namespace librun::host {

/// What `one_shot` and `two_shot` have of an input in the arena at once; a staging area has room
/// for it.
///
/// Two ranks: steps of `one_shot` take turns in an area, until the peer's second-level cache has
/// let go of the lines. More: `two_shot` meets once for each chunk, but an arena of every rank is
/// mapped by every other, and taken apart page by page at each suspend.
constexpr std::size_t chunk_bytes_for(int world) {
  constexpr std::size_t kAllRanksBytes = std::size_t{2} << 20;
  constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
  if (world == 1) return kLeastBytes;
  if (world == 2) return std::size_t{640} << 10;
  const std::size_t fair = kAllRanksBytes / static_cast<std::size_t>(world);
  return std::max(fair / kPageBytes * kPageBytes, kLeastBytes);
}

struct Slice {
  std::size_t offset_bytes;
  std::size_t size_bytes;
};

/// Rank `rank`'s part of `chunk_bytes`: equal parts rounded up to whole cache lines, the last ones
/// may be short or empty. Never more than chunk_bytes / world + 64.
inline Slice slice_of(int rank, int world, std::size_t chunk_bytes) {
  constexpr std::size_t kLineBytes = 64;
  const auto ranks = static_cast<std::size_t>(world);
  const std::size_t part = ((chunk_bytes + ranks - 1) / ranks + kLineBytes - 1) & ~(kLineBytes - 1);
  const std::size_t begin = std::min(part * static_cast<std::size_t>(rank), chunk_bytes);
  return {begin, std::min(part, chunk_bytes - begin)};
}

}  // namespace librun::host
