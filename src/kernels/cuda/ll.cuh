// SPDX-License-Identifier: Apache-2.0
// ll: one-shot push, the epoch inside the data. No flag, no fence, no barrier between ranks.
#pragma once

#include "kernels/cuda/block_steps.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/line_places.cuh"

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
  /// @param n elements that there are, the others read as zero
  __device__ static Data load(const T* from, std::uint32_t n) {
    Data data;
    if constexpr (kPerWord == 1) {
#pragma unroll
      for (std::uint32_t& word : data.words) word = 0;
#pragma unroll
      for (int i = 0; i < Data::kElements; ++i)
        if (i < n) data.elements[i] = from[i];
    } else if (is_word_aligned(from)) {
      const std::uint32_t whole = n / kPerWord;
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        data.words[i] = i < whole ? reinterpret_cast<const std::uint32_t*>(from)[i] : 0;
      if (n % kPerWord == 0) return data;
      const std::uint32_t last = load_word(from + whole * kPerWord, n % kPerWord);
#pragma unroll
      for (int i = 0; i < kWords; ++i) data.words[i] = i == whole ? last : data.words[i];
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        data.words[i] = load_word(from + i * kPerWord, static_cast<int>(n) - i * kPerWord);
    }
    return data;
  }
  __device__ static void store(T* to, std::uint32_t n, const Data& data) {
    if constexpr (kPerWord == 1) {
#pragma unroll
      for (int i = 0; i < Data::kElements; ++i)
        if (i < n) to[i] = data.elements[i];
    } else if (is_word_aligned(to)) {
      const std::uint32_t whole = n / kPerWord;
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        if (i < whole) reinterpret_cast<std::uint32_t*>(to)[i] = data.words[i];
      if (n % kPerWord == 0) return;
      std::uint32_t last = data.words[0];
#pragma unroll
      for (int i = 1; i < kWords; ++i) last = i == whole ? data.words[i] : last;
      store_word(to + whole * kPerWord, n % kPerWord, last);
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        store_word(to + i * kPerWord, static_cast<int>(n) - i * kPerWord, data.words[i]);
    }
  }

 private:
  // Small elements are moved by words, those of a line that is not full too: its warp has full
  // lines, and two ways are gone one after the other.
  static constexpr int kPerWord = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;

  __device__ static bool is_word_aligned(const T* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 4 == 0;
  }
  /// @param n elements that there are, if any
  __device__ static std::uint32_t load_word(const T* from, int n) {
    std::uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i)
      if (i < n)
        word |= std::uint32_t{reinterpret_cast<const Bits*>(from)[i]} << (i * 8 * sizeof(T));
    return word;
  }
  __device__ static void store_word(T* to, int n, std::uint32_t word) {
#pragma unroll
    for (int i = 0; i < kPerWord; ++i)
      if (i < n) reinterpret_cast<Bits*>(to)[i] = static_cast<Bits>(word >> (i * 8 * sizeof(T)));
  }
};

/// The result of one line, once it has come from every peer.
/// @return false when the wait was given up
template <class V>
__device__ bool receive_ll(BlockSteps<V::kWorld>& steps, const LinePlaces<V::kWorld>& places,
                           librun_op_t op, const typename LlLine<typename V::Type>::Data& own,
                           typename LlLine<typename V::Type>::Data& result) {
  using T = typename V::Type;
  using Line = LlLine<T>;
  const int rank = steps.rank();
  std::uint64_t offset = places.offset(steps.epoch());
  settle(offset);  // or each poll computes it anew
  if constexpr (V::kWorld > 0) {
    // All at once: one wait for the slowest, not one for each.
    constexpr int kLines = kSources<V::kWorld>;
    uint4 lines[kLines];
    const bool arrived = steps.wait([&] {
      int missing = -1;
#pragma unroll
      for (int i = 0; i < kLines; ++i)
        if (is_peer<V::kWorld>(i, rank)) lines[i] = load_line(places.from(i) + offset);
#pragma unroll
      for (int i = 0; i < kLines; ++i)
        if (is_peer<V::kWorld>(i, rank) && lines[i].w != steps.epoch())
          missing = source_of(i, steps.peers());
      return missing;
    });
    if (!arrived) return false;
    result = reduce_ranks<T, V::kSum, V::kWorld, Line::kWords>(V::kWorld, op, [&](int source) {
      return source == rank ? own : Line::data_of(lines[V::kWorld == 2 ? 0 : source]);
    });
    return true;
  } else {
    bool failed = false;
    result = reduce_ranks<T, V::kSum, 0, Line::kWords>(steps.world(), op, [&](int source) {
      if (source == rank || failed) return own;
      const std::byte* const from = places.from(steps.peers().row_of(source));
      uint4 line;
      failed = !steps.wait([&] {
        line = load_line(from + offset);
        return line.w == steps.epoch() ? -1 : source;
      });
      return Line::data_of(line);
    });
    return !failed;
  }
}

/// Each thread has one line of each step.
template <class V, class Args>
__global__ void __launch_bounds__(kMaxThreads, 2) ll(const __grid_constant__ Args all) {
  using T = typename V::Type;
  using Line = LlLine<T>;
  const KernelArgs& args = call_of(all);
  const Peers<V::kWorld> peers(peers_of(all));
  BlockSteps<V::kWorld> steps(args.state, peers);
  LinePlaces<V::kWorld> places(steps, threadIdx.x);
  places.settle();  // the table's loads, before anything waits for one of them
  const std::uint32_t share = share_of(args, peers.table().lines_per_block, blockDim.x);
  const std::uint32_t stride = share * steps.teams();
  const std::uint32_t first = share * blockIdx.x + threadIdx.x;
  const auto* send = reinterpret_cast<const T*>(args.send) + first * Line::kElements;
  auto* recv = reinterpret_cast<T*>(args.recv) + first * Line::kElements;
  // Elements from the thread's line to the end, negative beyond it.
  std::uint64_t left = args.count - first * Line::kElements;
  const bool has_line = threadIdx.x < share;
  const auto elements_here = [&]() -> std::uint32_t {
    if (!has_line || static_cast<std::int64_t>(left) <= 0) return 0;
    return static_cast<std::uint32_t>(left < Line::kElements ? left : Line::kElements);
  };
  std::uint32_t n = elements_here();
  // The proof of the parities wants a line from every block in every step, be it empty.
  std::uint32_t takes_part = n > 0 || threadIdx.x == 0;
  std::uint64_t rest = args.lines;
  std::uint32_t last = rest <= stride;
  std::uint64_t settled = places.settle() + steps.settle() + settle(send) + settle(recv) +
                          settle(n) + settle(takes_part) + settle(last);
  if (!steps.in_team(settled)) return;
  wait_for_predecessor(settled);
  bool failed = !steps.enter(args.announced);
  // Before the gate is known: the loads overlap, and the buffer is the caller's own.
  auto own = Line::load(send, n);
  while (true) {
    steps.begin();
    const bool works = !failed && takes_part != 0;
    if (works) {
      const uint4 line = Line::with_epoch(own, steps.epoch());
#pragma unroll
      for (int k = 1; k < peers.world(); ++k)
        store_line(places.to(k) + places.offset(steps.epoch()), line);
    }
    if (last != 0 && !failed) steps.leave();
    if (works) {
      typename Line::Data result;
      failed = !receive_ll<V>(steps, places, args.op, own, result);
      if (!failed) Line::store(recv, n, result);
    }
    // The end of the launch is the barrier of the last step.
    if (last != 0 || !steps.end(failed)) break;
    rest -= stride;
    last = rest <= stride;
    left -= stride * Line::kElements;
    send += stride * Line::kElements;
    recv += stride * Line::kElements;
    settle(send);  // or the compiler keeps an address for each element
    settle(recv);
    n = elements_here();
    takes_part = n > 0 || threadIdx.x == 0;
    own = Line::load(send, n);
  }
  steps.count_if_caught();
}

}  // namespace librun::cuda
