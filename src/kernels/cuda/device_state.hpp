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

/// Where lines go to and come from, of block 0, even steps and slot 0.
struct PeerRow {
  std::byte* to;    ///< row i: in the arena of the (i+1)-th after this rank, so that all ranks
                    ///< begin with another one
  std::byte* from;  ///< row source_row(): what that rank writes into the own arena
};

/// In which row a kernel finds what comes from `source`: where there is one peer, in the one row
/// that there is; else each rank has its own, so that no index depends on the rank.
constexpr int source_row(int world, int source) { return world == 2 ? 0 : source; }

/// What a kernel must know of its peers, in the order in which it needs it, and computed by the
/// host as far as it goes: a launch reads it before it can do anything. See make_peer_table().
struct alignas(16) PeerTable {
  std::uint32_t rank;
  std::uint32_t world;
  std::uint32_t open_gate;  ///< what ControlBlock::gate holds on the device while this table counts
  std::uint32_t max_blocks;
  std::uint64_t parity_bytes;  ///< from the lines of even steps to those of odd ones
  std::uint32_t lines_per_block;
  std::uint32_t ring_lines;
  LineWords armed;  ///< what an armed line of this rank's arena holds; drawn for each generation
  std::uint64_t ring_slot_bytes;
  std::uint64_t ring_source_bytes;
  PeerRow lines[kMaxWorld];
  PeerRow rings[2][kMaxWorld];  ///< of inputs, of results
  std::byte* arena[kMaxWorld];  ///< [k]: of rank (rank + k) % world
  std::uint64_t flags;          ///< ArenaLayout::flags
  std::uint64_t staging;        ///< ArenaLayout::staging[0]
};

/// At one address for life, so that graphs may hold it.
struct DeviceState {
  ControlBlock control;  ///< copied from the host by publish; the gate: PeerTable::open_gate, or 0
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
  std::uint64_t lines;       ///< that hold `count` elements, as the algorithm has them
  std::uint32_t fair_lines;  ///< of each block, or of each rank's part in it, rounded up
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
