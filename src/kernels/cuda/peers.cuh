// SPDX-License-Identifier: Apache-2.0
// Where a kernel finds its peers.
#pragma once

#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

/// The way of every graph that shall outlive a suspend.
__device__ inline const PeerTable& peers_of(const KernelArgs& args) { return args.state->peers; }
__device__ inline const PeerTable& peers_of(const BakedArgs& args) { return args.peers; }
__device__ inline const KernelArgs& call_of(const KernelArgs& args) { return args; }
__device__ inline const KernelArgs& call_of(const BakedArgs& args) { return args.call; }

/// Lines of each of `parts` in a step. Divided by the host; again only where the graph is older
/// than the layout.
__device__ inline std::uint64_t fair_share(const KernelArgs& args, std::uint64_t lines,
                                           std::uint32_t teams, std::uint32_t room,
                                           std::uint32_t threads, std::uint32_t ranks = 1) {
  std::uint64_t fair = args.fair_lines;
  if (teams != gridDim.x) fair = (lines + teams * ranks - 1) / (teams * ranks);
  const std::uint32_t most = room < threads ? room : threads;
  return fair < most ? fair : most;
}

/// What of the table a thread needs, in registers: nothing is looked up twice, and all of it before
/// the launch waits for the one in front.
/// @tparam World 0: known at run time only, and arenas stay in the table
template <int World>
class Peers {
 public:
  __device__ explicit Peers(const PeerTable& table)
      : table_(table),
        layout_(table.layout),
        rank_(static_cast<int>(table.rank)),
        world_(static_cast<int>(table.world)) {
    arena_[0] = table.arena[0];
#pragma unroll
    for (int k = 1; k < World; ++k) arena_[k] = table.arena[k];
  }

  __device__ int rank() const { return rank_; }
  __device__ int world() const { return World > 0 ? World : world_; }
  __device__ const ArenaLayout& layout() const { return layout_; }
  __device__ uint4 armed() const {
    return make_uint4(table_.armed.word[0], table_.armed.word[1], table_.armed.word[2],
                      table_.armed.word[3]);
  }

  __device__ std::byte* own_arena() const { return arena_[0]; }
  /// Of the k-th after this rank; in an unrolled loop where World is known.
  __device__ std::byte* arena(int k) const { return World > 0 ? arena_[k] : table_.arena[k]; }
  __device__ std::byte* arena_of(int rank) const { return table_.arena[distance_to(rank)]; }
  /// How many ranks after this one.
  __device__ int distance_to(int rank) const {
    const int k = rank - rank_;
    return k < 0 ? k + world() : k;
  }

 private:
  const PeerTable& table_;
  const ArenaLayout layout_;
  int rank_;
  int world_;
  std::byte* arena_[World > 0 ? World : 1];
};

/// What comes from peers stands in an array that is gone through in unrolled loops. Where there is
/// one peer it has one place; else each rank has its own, and that of this rank is left out, so
/// that no index depends on the rank.
template <int World>
inline constexpr int kSources = World == 2 ? 1 : World;

template <int World>
__device__ inline bool is_peer(int i, int rank) {
  return World == 2 || i != rank;
}
template <int World>
__device__ inline int source_of(int i, const Peers<World>& peers) {
  return World == 2 ? 1 - peers.rank() : i;
}

}  // namespace librun::cuda
