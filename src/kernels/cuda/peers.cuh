// SPDX-License-Identifier: Apache-2.0
// Where a kernel finds its peers.
#pragma once

#include "kernels/cuda/access.cuh"
#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

/// The way of every graph that shall outlive a suspend.
__device__ inline const PeerTable& peers_of(const KernelArgs& args) { return args.state->peers; }
__device__ inline const PeerTable& peers_of(const BakedArgs& args) { return args.peers; }
__device__ inline const KernelArgs& call_of(const KernelArgs& args) { return args; }
__device__ inline const KernelArgs& call_of(const BakedArgs& args) { return args.call; }

/// Lines of a block in a step, or of each rank's part in it. A graph may be older than the layout,
/// which then has less room, or fewer teams: it takes more steps.
__device__ inline std::uint32_t share_of(const KernelArgs& args, std::uint32_t room,
                                         std::uint32_t threads) {
  return min(args.fair_lines, min(room, threads));
}

/// The table, and what of it every kernel needs.
/// @tparam World 0: known at run time only
template <int World>
class Peers {
 public:
  __device__ explicit Peers(const PeerTable& table)
      : table_(table),
        rank_(static_cast<int>(table.rank)),
        world_(static_cast<int>(table.world)),
        open_gate_(table.open_gate),
        max_blocks_(table.max_blocks) {}

  __device__ int rank() const { return rank_; }
  __device__ int world() const { return World > 0 ? World : world_; }
  /// PeerTable::open_gate.
  __device__ std::uint32_t open_gate() const { return open_gate_; }
  __device__ std::uint32_t max_blocks() const { return max_blocks_; }
  __device__ const PeerTable& table() const { return table_; }

  __device__ std::byte* own_arena() const { return table_.arena[0]; }
  __device__ std::byte* arena_of(int rank) const { return table_.arena[distance_to(rank)]; }
  /// source_row(), which is constexpr, on the device.
  __device__ int row_of(int source) const { return world() == 2 ? 0 : source; }
  /// How many ranks after this one.
  __device__ int distance_to(int rank) const {
    const int k = rank - rank_;
    return k < 0 ? k + world() : k;
  }

 private:
  const PeerTable& table_;
  int rank_;
  int world_;
  std::uint32_t open_gate_;
  std::uint32_t max_blocks_;
};

/// Rows of sources, the own one among them where there are several.
template <int World>
inline constexpr int kSources = World == 2 ? 1 : World;

/// The rows of PeerTable that a thread goes through in unrolled loops, in registers: nothing is
/// looked up twice. Where the world is known at run time only they stay in the table.
template <int World>
class Rows {
 public:
  __device__ explicit Rows(const PeerRow* rows) : rows_(rows) {
#pragma unroll
    for (int k = 1; k < World; ++k) to_[k] = rows[k - 1].to;
#pragma unroll
    for (int i = 0; i < kSources<World>; ++i) from_[i] = rows[i].from;
  }
  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() {
    std::uint64_t sum = 0;
#pragma unroll
    for (int k = 1; k < World; ++k) sum += cuda::settle(to_[k]);
#pragma unroll
    for (int i = 0; i < kSources<World>; ++i) sum += cuda::settle(from_[i]);
    return sum;
  }
  /// In the arena of the k-th after this rank.
  __device__ std::byte* to(int k) const { return World > 0 ? to_[k] : rows_[k - 1].to; }
  /// In the own arena, of source_row() i.
  __device__ std::byte* from(int i) const { return World > 0 ? from_[i] : rows_[i].from; }

 private:
  const PeerRow* rows_;
  std::byte* to_[World > 0 ? World : 1];
  std::byte* from_[World > 0 ? kSources<World> : 1];
};

template <int World>
__device__ inline bool is_peer(int i, int rank) {
  return World == 2 || i != rank;
}
template <int World>
__device__ inline int source_of(int i, const Peers<World>& peers) {
  return World == 2 ? 1 - peers.rank() : i;
}

}  // namespace librun::cuda
