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
      : ArmedRing(peers, peers.table(), peers.table().rings[static_cast<int>(of)]) {}
  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() {
    return rows_.settle() + cuda::settle(slot_bytes_) + cuda::settle(block_offset_) +
           cuda::settle(armed_.x) + cuda::settle(armed_.y) + cuda::settle(armed_.z) +
           cuda::settle(armed_.w);
  }

  /// From the begin of a ring, of one source, to a line of this block in a step.
  __device__ std::uint64_t offset(std::uint32_t step, std::uint32_t index) const {
    return step % kRingSlots * slot_bytes_ + (block_offset_ + index * kLineBytes);
  }
  /// To the k-th after this rank; in an unrolled loop where World is known. @param at an offset()
  __device__ void send(int k, std::uint64_t at, uint4 line) const {
    store_line(rows_.to(k) + at, line);
  }
  /// Where the source of row i writes to; in an unrolled loop where World is known.
  __device__ std::byte* place_from(int i, std::uint64_t at) const { return rows_.from(i) + at; }
  /// Where the k-th after this rank writes to; for loops that are not unrolled.
  __device__ std::byte* place_of(int k, std::uint64_t at) const {
    return first_ + static_cast<unsigned>(k - 1) * source_bytes_ + at;
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
  __device__ ArmedRing(const Peers<World>& peers, const PeerTable& table, const PeerRow* rows)
      : rows_(rows),
        armed_(make_uint4(table.armed.word[0], table.armed.word[1], table.armed.word[2],
                          table.armed.word[3])),
        slot_bytes_(table.ring_slot_bytes),
        source_bytes_(table.ring_source_bytes),
        first_(rows[peers.row_of(peers.rank() + 1 == peers.world() ? 0 : peers.rank() + 1)].from),
        block_offset_(static_cast<std::uint32_t>(blockIdx.x * table.ring_lines * kLineBytes)) {}

  Rows<World> rows_;
  uint4 armed_;
  std::uint64_t slot_bytes_;
  std::uint64_t source_bytes_;
  std::byte* first_;  ///< of the rank after this one
  std::uint32_t block_offset_;
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
        std::byte* const from = ring.place_from(steps.peers().row_of(source), at);
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
  if constexpr (N > 1) {
    if (n > 1) {
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
  }
  // One line, as in all calls to 256 KiB at two ranks: there the time of a poll counts.
  if (n == 0) return true;
  arrivals[0].look(steps, ring, place_of(0));
  return steps.wait([&] {
    const int peer = arrivals[0].missing(steps, ring);
    if (peer >= 0) arrivals[0].look(steps, ring, place_of(0));
    return peer;
  });
}

}  // namespace librun::cuda
