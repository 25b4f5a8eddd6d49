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
    begin_ = layout.rings[static_cast<int>(of)] + blockIdx.x * block_bytes;
#pragma unroll
    for (int k = 1; k < World; ++k) to_[k] = begin_to(k);
#pragma unroll
    for (int i = 0; i < kSources<World>; ++i) from_[i] = begin_from(source_of(i, peers));
  }
  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() {
    std::uint64_t sum = cuda::settle(slot_bytes_) + cuda::settle(armed_.x) +
                        cuda::settle(armed_.y) + cuda::settle(armed_.z) + cuda::settle(armed_.w);
#pragma unroll
    for (int k = 1; k < World; ++k) sum += cuda::settle(to_[k]);
#pragma unroll
    for (int i = 0; i < kSources<World>; ++i) sum += cuda::settle(from_[i]);
    return sum;
  }

  /// From the begin of a ring, of this block and one source, to a line of a step.
  __device__ std::uint64_t offset(std::uint32_t step, std::uint32_t index) const {
    return step % kRingSlots * slot_bytes_ + index * kLineBytes;
  }
  /// To the k-th after this rank; in an unrolled loop where World is known. @param at an offset()
  __device__ void send(int k, std::uint64_t at, uint4 line) const {
    store_line((World > 0 ? to_[k] : begin_to(k)) + at, line);
  }
  /// Where the i-th of kSources<World> writes to; in an unrolled loop.
  __device__ std::byte* place_from(int i, std::uint64_t at) const { return from_[i] + at; }
  /// Where the k-th after this rank writes to.
  __device__ std::byte* place_of(int k, std::uint64_t at) const {
    return peers_.own_arena() + begin_ + static_cast<unsigned>(k - 1) * source_bytes_ + at;
  }

  __device__ bool is_armed(uint4 line) const {
    return ((line.x ^ armed_.x) | (line.y ^ armed_.y) | (line.z ^ armed_.z) |
            (line.w ^ armed_.w)) == 0;
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
  /// Seen from there, this rank is the (world - k)-th.
  __device__ std::byte* begin_to(int k) const {
    return peers_.arena(k) + begin_ + static_cast<unsigned>(peers_.world() - k - 1) * source_bytes_;
  }
  __device__ std::byte* begin_from(int source) const {
    const int k = peers_.distance_to(source);
    return peers_.own_arena() + begin_ + static_cast<unsigned>(k > 0 ? k - 1 : 0) * source_bytes_;
  }

  const Peers<World>& peers_;
  uint4 armed_;
  std::uint64_t begin_;
  std::uint64_t source_bytes_;
  std::uint64_t slot_bytes_;
  std::byte* to_[World > 0 ? World : 1];
  std::byte* from_[World > 0 ? kSources<World> : 1];
};

/// Where the round that begins at `base` ends, in lines.
__device__ inline std::uint64_t end_of_round(std::uint64_t base, std::uint64_t stride,
                                             std::uint64_t lines) {
  const std::uint64_t end = base + kRoundSteps * stride;
  return end < lines ? end : lines;
}

/// The lines that come to one place in a step, one from each peer.
template <class V>
class Arrivals {
  using T = typename V::Type;
  using Steps = BlockSteps<V::kWorld>;
  using Ring = ArmedRing<V::kWorld>;
  static constexpr int kLines = kSources<V::kWorld>;

 public:
  /// Loads them as they are, without waiting. @param at the place, an offset()
  __device__ void look(const Steps& steps, const Ring& ring, std::uint64_t at) {
#pragma unroll
    for (int i = 0; i < kLines; ++i)
      if (is_peer<V::kWorld>(i, steps.rank())) lines_[i] = load_line(ring.place_from(i, at));
  }
  /// A rank whose line had not come at the last look, -1 when none. Where the world is known at run
  /// time only, it is take() that looks and waits.
  __device__ int missing(const Steps& steps, const Ring& ring) const {
    int peer = -1;
#pragma unroll
    for (int i = 0; i < kLines; ++i)
      if (is_peer<V::kWorld>(i, steps.rank()) && ring.is_armed(lines_[i]))
        peer = source_of(i, steps.peers());
    return peer;
  }
  /// When none is missing: arms the places again, and reduces the lines with `own`.
  /// @return false when a wait was given up
  __device__ bool take(Steps& steps, const Ring& ring, std::uint64_t at, librun_op_t op,
                       const Vector<T>& own, Vector<T>& result) const {
    const int rank = steps.rank();
    if constexpr (V::kWorld > 0) {
#pragma unroll
      for (int i = 0; i < kLines; ++i)
        if (is_peer<V::kWorld>(i, rank)) ring.arm(ring.place_from(i, at));
      result = reduce_ranks<T, V::kSum, V::kWorld, 4>(V::kWorld, op, [&](int source) {
        return source == rank ? own : to_vector<T>(lines_[V::kWorld == 2 ? 0 : source]);
      });
      return true;
    } else {
      bool failed = false;
      result = reduce_ranks<T, V::kSum, 0, 4>(steps.world(), op, [&](int source) {
        if (source == rank || failed) return own;
        std::byte* const from = ring.place_of(steps.peers().distance_to(source), at);
        uint4 line = load_line(from);
        failed = !ring.await(steps, source, from, line);
        if (!failed) ring.arm(from);
        return to_vector<T>(line);
      });
      return !failed;
    }
  }

 private:
  uint4 lines_[kLines > 0 ? kLines : 1];
};

/// Waits until of all the first `n` nothing is missing: once, for the slowest.
/// @param place_of offset() of each
/// @return false when the wait was given up
template <class V, int N, class PlaceOf>
__device__ bool await_all(BlockSteps<V::kWorld>& steps, const ArmedRing<V::kWorld>& ring,
                          Arrivals<V> (&arrivals)[N], std::uint32_t n, PlaceOf&& place_of) {
#pragma unroll
  for (int u = 0; u < N; ++u)
    if (u < n) arrivals[u].look(steps, ring, place_of(u));
  return steps.wait([&] {
    int peer = -1;
#pragma unroll
    for (int u = 0; u < N; ++u)
      if (u < n) peer = max(peer, arrivals[u].missing(steps, ring));
    if (peer < 0) return peer;
#pragma unroll
    for (int u = 0; u < N; ++u)
      if (u < n && arrivals[u].missing(steps, ring) >= 0)
        arrivals[u].look(steps, ring, place_of(u));
    return peer;
  });
}

}  // namespace librun::cuda
