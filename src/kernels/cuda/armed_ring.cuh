// SPDX-License-Identifier: Apache-2.0
// Armed lines: sixteen bytes of data that need no flag.
#pragma once

#include "kernels/cuda/block_steps.cuh"
#include "kernels/cuda/vectors.cuh"

namespace librun::cuda {

enum class RingOf { inputs, results };

/// A line that nobody has written holds the owner's armed pattern. It arrives whole, so that a line
/// which holds anything else has come, and all of it is data: no flag, no fence, no bit lost,
/// whatever the type. The reader arms it again.
///
/// The pattern has 128 random bits, drawn by the owner for each generation and known to nobody
/// else. Data that equals it would look as if it never came: one line in 2^128, an error at the
/// deadline and never a wrong sum.
///
///   slot 0                                      | slot 1 | ... | slot 7 |
///   source 1: block 0, 1, ... | source 2: ... |
///
/// Step s goes to slot s mod 8, and a thread sends step s+1 before it receives step s: the link is
/// busy while it waits. Why eight suffice. Steps are grouped into rounds of six at most, so no slot
/// is used twice in a round. Rounds of one launch are parted by an exchange of flags, whose release
/// and acquire put all arming stores of a round before the peers' writes of the next. Rounds of two
/// launches are parted by the ends of the launches: the first that a launch writes are steps s+1
/// and s+2, over s-7 and s-6, which are of the round before the last; before it writes s+3 it has
/// received s+1, which tells that the peer's launch before is over. Without rounds the next write
/// does overtake an arming store, eight steps older though it is: measured, 64 MB at two ranks, a
/// line lost for ever.
template <int World>
class ArmedRing {
 public:
  __device__ ArmedRing(const Peers<World>& peers, RingOf of)
      : peers_(peers), armed_(peers.armed()) {
    const ArenaLayout& layout = peers.layout();
    const std::uint64_t block_bytes = layout.ring_lines * kLineBytes;
    source_bytes_ = layout.max_blocks * block_bytes;
    slot_bytes_ = static_cast<unsigned>(peers.world() - 1) * source_bytes_;
    offset_ = layout.rings[static_cast<int>(of)] + blockIdx.x * block_bytes;
  }

  /// To the k-th after this rank.
  __device__ void send(int k, std::uint32_t step, std::uint32_t index, uint4 line) const {
    // Seen from there, this rank is the (world - k)-th.
    store_line(peers_.arena(k) + at(step, peers_.world() - k, index), line);
  }
  /// Where the k-th after this rank writes to.
  __device__ std::byte* place_of(int k, std::uint32_t step, std::uint32_t index) const {
    return peers_.own_arena() + at(step, k, index);
  }

  __device__ bool is_armed(uint4 line) const {
    return line.x == armed_.x && line.y == armed_.y && line.z == armed_.z && line.w == armed_.w;
  }
  /// Waits until `line`, which was loaded from `place`, is data.
  /// @return false when the wait was given up
  __device__ bool await(BlockSteps<World>& steps, int source, const std::byte* place,
                        uint4& line) const {
    if (!is_armed(line)) return true;
    return steps.wait([&] {
      line = load_line(place);
      return is_armed(line) ? source : -1;
    });
  }
  __device__ void arm(std::byte* place) const { store_line(place, armed_); }

 private:
  __device__ std::uint64_t at(std::uint32_t step, int k, std::uint32_t index) const {
    return offset_ + (step % kRingSlots) * slot_bytes_ +
           static_cast<unsigned>(k - 1) * source_bytes_ + index * kLineBytes;
  }

  const Peers<World>& peers_;
  uint4 armed_;
  std::uint64_t source_bytes_;
  std::uint64_t slot_bytes_;
  std::uint64_t offset_;
};

/// Where the round that begins at `base` ends, in lines.
__device__ inline std::uint64_t end_of_round(std::uint64_t base, std::uint64_t stride,
                                             std::uint64_t lines) {
  const std::uint64_t end = base + kRoundSteps * stride;
  return end < lines ? end : lines;
}

/// The lines of one place in a step, one from each peer, reduced with `own`, and armed again.
/// @return false when a wait was given up
template <class V>
__device__ bool receive_and_reduce(BlockSteps<V::kWorld>& steps, const ArmedRing<V::kWorld>& ring,
                                   std::uint32_t index, librun_op_t op,
                                   const Vector<typename V::Type>& own,
                                   Vector<typename V::Type>& result) {
  using T = typename V::Type;
  const Peers<V::kWorld>& peers = steps.peers();
  const int rank = peers.rank();
  const auto place = [&](int source) {
    return ring.place_of(peers.distance_to(source), steps.epoch(), index);
  };
  bool failed = false;
  if constexpr (V::kWorld > 0) {
    // All at once: one wait for the slowest, not one for each.
    uint4 lines[V::kWorld];
    failed = !steps.wait([&] {
#pragma unroll
      for (int source = 0; source < V::kWorld; ++source)
        if (source != rank) lines[source] = load_line(place(source));
      int missing = -1;
#pragma unroll
      for (int source = 0; source < V::kWorld; ++source)
        if (source != rank && ring.is_armed(lines[source])) missing = source;
      return missing;
    });
    if (failed) return false;
#pragma unroll
    for (int source = 0; source < V::kWorld; ++source)
      if (source != rank) ring.arm(place(source));
    result = reduce_ranks<T, V::kSum, V::kWorld, 4>(V::kWorld, op, [&](int source) {
      return source == rank ? own : to_vector<T>(lines[source]);
    });
  } else {
    result = reduce_ranks<T, V::kSum, 0, 4>(steps.world(), op, [&](int source) {
      if (source == rank || failed) return own;
      std::byte* const from = place(source);
      uint4 line = load_line(from);
      failed = !ring.await(steps, source, from, line);
      if (!failed) ring.arm(from);
      return to_vector<T>(line);
    });
  }
  return !failed;
}

}  // namespace librun::cuda
