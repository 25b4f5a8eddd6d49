// SPDX-License-Identifier: Apache-2.0
// A ring of indices in random order, so that no load can be foreseen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace car::info {

inline constexpr std::size_t kChainStrideBytes = 128;

/// Entry i, of kChainStrideBytes, begins with the number of the entry behind it in the ring.
/// @return the words of all entries, size_bytes in all
inline std::vector<std::uint32_t> make_chain(std::size_t size_bytes) {
  constexpr std::size_t kWords = kChainStrideBytes / sizeof(std::uint32_t);
  const std::size_t n = size_bytes / kChainStrideBytes;
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<std::uint32_t> words(n * kWords, 0);
  for (std::size_t i = 0; i < n; ++i) words[order[i] * kWords] = order[(i + 1) % n];
  return words;
}

}  // namespace car::info
