// SPDX-License-Identifier: Apache-2.0
// ll: one-shot push, the epoch inside the data. No flag, no fence, no barrier between ranks.
#pragma once

#include "kernels/cuda/block_steps.cuh"
#include "kernels/cuda/element.cuh"

namespace librun::cuda {

// A line of 16 bytes, written and read whole:
//
//   types up to 4 bytes   | 12 bytes of data          | epoch |
//   types of 8 bytes      | 8 bytes of data   |   -   | epoch |
template <class T>
struct LlLine {
  static constexpr int kWords = sizeof(T) == 8 ? 2 : 3;
  using Data = Packed<T, kWords>;
  static constexpr std::uint64_t kElements = Data::kElements;

  __device__ static uint4 with_epoch(const Data& data, std::uint32_t epoch) {
    return make_uint4(data.words[0], data.words[1], kWords == 3 ? data.words[kWords - 1] : 0,
                      epoch);
  }
  __device__ static Data data_of(uint4 line) {
    Data data;
    data.words[0] = line.x;
    data.words[1] = line.y;
    if constexpr (kWords == 3) data.words[2] = line.z;
    return data;
  }
  __device__ static Data load(const T* from, std::uint64_t begin, std::uint64_t count) {
    Data data;
#pragma unroll
    for (std::uint32_t& word : data.words) word = 0;
    if (kByWords && is_whole(from, begin, count)) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(from + begin);
#pragma unroll
      for (int i = 0; i < kWords; ++i) data.words[i] = words[i];
      return data;
    }
#pragma unroll
    for (int i = 0; i < Data::kElements; ++i)
      if (begin + i < count) data.elements[i] = from[begin + i];
    return data;
  }
  __device__ static void store(T* to, std::uint64_t begin, std::uint64_t count, const Data& data) {
    if (kByWords && is_whole(to, begin, count)) {
      auto* words = reinterpret_cast<std::uint32_t*>(to + begin);
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = data.words[i];
      return;
    }
#pragma unroll
    for (int i = 0; i < Data::kElements; ++i)
      if (begin + i < count) to[begin + i] = data.elements[i];
  }

 private:
  static constexpr bool kByWords = sizeof(T) < 4;
  __device__ static bool is_whole(const T* at, std::uint64_t begin, std::uint64_t count) {
    return begin + kElements <= count && reinterpret_cast<std::uintptr_t>(at) % 4 == 0;
  }
};

/// The result of one line, once it has come from every peer.
/// @return false when the wait was given up
template <class V>
__device__ bool receive_ll(BlockSteps<V::kWorld>& steps, std::uint32_t index, librun_op_t op,
                           const typename LlLine<typename V::Type>::Data& own,
                           typename LlLine<typename V::Type>::Data& result) {
  using T = typename V::Type;
  using Line = LlLine<T>;
  const int rank = steps.rank();
  if constexpr (V::kWorld > 0) {
    // All at once: one wait for the slowest, not one for each.
    uint4 lines[V::kWorld];
    const bool arrived = steps.wait([&] {
      int missing = -1;
#pragma unroll
      for (int source = 0; source < V::kWorld; ++source)
        if (source != rank) lines[source] = load_line(steps.line_from(source, index));
#pragma unroll
      for (int source = 0; source < V::kWorld; ++source)
        if (source != rank && lines[source].w != steps.epoch()) missing = source;
      return missing;
    });
    if (!arrived) return false;
    result = reduce_ranks<T, V::kSum, V::kWorld, Line::kWords>(V::kWorld, op, [&](int source) {
      return source == rank ? own : Line::data_of(lines[source]);
    });
    return true;
  } else {
    bool failed = false;
    result = reduce_ranks<T, V::kSum, 0, Line::kWords>(steps.world(), op, [&](int source) {
      if (source == rank || failed) return own;
      uint4 line;
      failed = !steps.wait([&] {
        line = load_line(steps.line_from(source, index));
        return line.w == steps.epoch() ? -1 : source;
      });
      return Line::data_of(line);
    });
    return !failed;
  }
}

/// Each thread has one line of each step.
template <class V, class Args>
__global__ void __launch_bounds__(kMaxLinesPerBlock) ll(const __grid_constant__ Args all) {
  using T = typename V::Type;
  using Line = LlLine<T>;
  const KernelArgs& args = call_of(all);
  const Peers<V::kWorld> peers(peers_of(all));
  BlockSteps<V::kWorld> steps(args.state, peers);
  const T* send = reinterpret_cast<const T*>(args.send);
  T* recv = reinterpret_cast<T*>(args.recv);
  const std::uint64_t lines = (args.count + Line::kElements - 1) / Line::kElements;
  const std::uint32_t teams = steps.teams();
  const std::uint32_t index = threadIdx.x;
  const std::uint64_t share =
      fair_share(args, lines, teams, peers.layout().lines_per_block, blockDim.x);
  const auto element_of = [&](std::uint64_t base) {
    return (base + share * blockIdx.x + index) * Line::kElements;
  };
  wait_for_predecessor();
  if (!steps.in_team()) return;
  // Before the gate is known: the loads overlap, and the buffer is the caller's own.
  auto own = Line::load(send, element_of(0), index < share ? args.count : 0);
  if (!steps.enter(args.announced)) return;
  for (std::uint64_t base = 0; base < lines; base += share * teams) {
    const std::uint64_t begin = element_of(base);
    const bool mine = index < share && begin < args.count;
    if (base > 0) own = Line::load(send, begin, mine ? args.count : 0);
    steps.begin();
    bool failed = false;
    // The proof of the parities wants a line from every block in every step, be it empty.
    if (mine || index == 0) {
      const uint4 line = Line::with_epoch(own, steps.epoch());
#pragma unroll
      for (int k = 1; k < peers.world(); ++k) store_line(steps.line_to(k, index), line);
      typename Line::Data result;
      failed = !receive_ll<V>(steps, index, args.op, own, result);
      if (mine && !failed) Line::store(recv, begin, args.count, result);
    }
    if (!steps.end(failed)) return;
  }
  steps.leave();
}

}  // namespace librun::cuda
