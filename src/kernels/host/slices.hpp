// SPDX-License-Identifier: Apache-2.0
// Which part of a chunk each rank reduces.
#pragma once

#include <algorithm>
#include <cstddef>

namespace librun::host {

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
