// SPDX-License-Identifier: Apache-2.0
// What the kernels keep in device memory, and their one argument.
#pragma once

#include <cstdint>

#include "kernels/control_block.hpp"
#include "kernels/device.hpp"

namespace librun::cuda {

inline constexpr int kMaxWorld = 16;
inline constexpr std::uint32_t kMaxBlocks = 128;
/// Of a block that forms a team.
inline constexpr std::uint32_t kMaxThreads = 256;
inline constexpr std::uint32_t kWarp = 32;
inline constexpr std::uint32_t kMaxWarps = kMaxThreads / kWarp;

/// Sixteen bytes, as four words.
struct LineWords {
  std::uint32_t word[4];
};

/// What a kernel must know of its peers. Seen from each rank, peer k is the k-th after it: all
/// begin with another one.
struct alignas(16) PeerTable {
  std::uint32_t rank;
  std::uint32_t world;
  std::uint64_t reserved;
  LineWords armed;  ///< what an armed line of this rank's arena holds; drawn for each generation
  ArenaLayout layout;
  std::byte* arena[kMaxWorld];  ///< [k]: of rank (rank + k) % world
};

/// At one address for life, so that graphs may hold it.
struct DeviceState {
  ControlBlock control;  ///< copied from the host by publish
  PeerTable peers;       ///< the table once more, as kernels like it
  /// The last step that each block has taken, on its own: no rendezvous of the grid. Each warp has
  /// a copy, which nobody else writes in a launch that the warp is part of: no barrier either.
  /// Zero at the start of a generation, when all arenas are fresh too.
  std::uint32_t step[kMaxBlocks][kMaxWarps];
  std::uint32_t failed;   ///< the first failing block has reported
  std::uint32_t refused;  ///< what the announcement of the call under way said: 0: go on
  Announcement announced[kMaxWorld];
  std::uint32_t caught;  ///< launches that found the gate closed; of all generations
};

/// Nothing in it goes stale.
struct KernelArgs {
  DeviceState* state;
  const std::byte* send;
  std::byte* recv;
  std::uint64_t count;
  std::uint64_t fair_lines;  ///< of each block, or of each rank's part in it, rounded up
  librun_op_t op;
  Body body;
  bool announced;  ///< an announce kernel ran before this one
};

/// For measuring what the table costs: the same with the pointers in it. They do go stale.
struct BakedArgs {
  KernelArgs call;
  PeerTable peers;
};

}  // namespace librun::cuda
