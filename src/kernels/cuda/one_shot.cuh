// SPDX-License-Identifier: Apache-2.0
// one_shot: every rank pushes all of its input to every peer, and reduces everything.
#pragma once

#include "kernels/cuda/armed_ring.cuh"
#include "kernels/cuda/geometry.hpp"

namespace librun::cuda {

template <int World>
inline constexpr std::uint32_t kRingThreads = max_ring_threads(World);

/// Lines that a thread has in flight in each step: few peers leave registers for more.
template <int World>
inline constexpr int kOneShotLines = World == 2 ? 2 : 1;

template <class V>
class OneShot {
  using T = typename V::Type;
  static constexpr int kLines = kOneShotLines<V::kWorld>;

 public:
  __device__ OneShot(const KernelArgs& args, BlockSteps<V::kWorld>& steps)
      : steps_(steps),
        ring_(steps.peers(), RingOf::inputs),
        op_(args.op),
        send_(args.send, args.count * sizeof(T)),
        recv_(args.recv, args.count * sizeof(T)),
        lines_((send_.size_bytes + kVectorBytes - 1) / kVectorBytes),
        teams_(steps.teams()),
        piece_(fair_share(args, lines_, teams_, steps.peers().layout().ring_lines,
                          blockDim.x * kLines)) {}

  /// The input of the first step; needs no gate.
  __device__ void prepare() { load(blockIdx.x * piece_, own_); }

  // A thread meets the same thread of its peers only: no barrier before the end.
  __device__ void run() {
    const std::uint64_t stride = teams_ * piece_;
    std::uint64_t base = 0;
    std::uint64_t begin = blockIdx.x * piece_;
    bool failed = false;
    while (true) {
      const std::uint64_t round_end = end_of_round(base, stride, lines_);
      push(begin, BlockSteps<V::kWorld>::after(steps_.epoch()), own_);
      for (; base < round_end && !failed; base += stride, begin += stride) {
        steps_.begin();
        Vector<T> next[kLines];
        if (base + stride < round_end) {
          load(begin + stride, next);
          push(begin + stride, BlockSteps<V::kWorld>::after(steps_.epoch()), next);
        }
        failed = !receive(begin);
#pragma unroll
        for (int u = 0; u < kLines; ++u) own_[u] = next[u];
      }
      if (base >= lines_) break;
      if (!steps_.exchange_flags(failed)) return;
      load(begin, own_);
    }
    if (steps_.end(failed)) steps_.leave();
  }

 private:
  __device__ static std::uint32_t index_of(int u) { return u * blockDim.x + threadIdx.x; }
  /// Whether this thread has a line u in the piece that begins at line `begin`.
  __device__ bool has(std::uint64_t begin, int u) const {
    return index_of(u) < piece_ && begin + index_of(u) < lines_;
  }

  __device__ void load(std::uint64_t begin, Vector<T>* values) const {
#pragma unroll
    for (int u = 0; u < kLines; ++u)
      if (has(begin, u)) values[u] = send_.load((begin + index_of(u)) * kVectorBytes);
  }
  __device__ void push(std::uint64_t begin, std::uint32_t step, const Vector<T>* values) const {
#pragma unroll
    for (int u = 0; u < kLines; ++u)
      if (has(begin, u))
#pragma unroll
        for (int k = 1; k < steps_.world(); ++k)
          ring_.send(k, step, index_of(u), to_words(values[u]));
  }
  __device__ bool receive(std::uint64_t begin) {
#pragma unroll
    for (int u = 0; u < kLines; ++u) {
      if (!has(begin, u)) continue;
      Vector<T> sum;
      if (!receive_and_reduce<V>(steps_, ring_, index_of(u), op_, own_[u], sum)) return false;
      recv_.store((begin + index_of(u)) * kVectorBytes, sum);
    }
    return true;
  }

  BlockSteps<V::kWorld>& steps_;
  const ArmedRing<V::kWorld> ring_;
  librun_op_t op_;
  UserRange<T> send_;
  UserRange<T> recv_;
  std::uint64_t lines_;
  std::uint32_t teams_;
  std::uint64_t piece_;  ///< lines of a block in a step
  Vector<T> own_[kLines];
};

template <class V, class Args>
__global__ void __launch_bounds__(kRingThreads<V::kWorld>, 2)
    one_shot(const __grid_constant__ Args all) {
  const KernelArgs& args = call_of(all);
  const Peers<V::kWorld> peers(peers_of(all));
  BlockSteps<V::kWorld> steps(args.state, peers);
  OneShot<V> body(args, steps);
  wait_for_predecessor();
  if (!steps.in_team()) return;
  body.prepare();
  if (steps.enter(args.announced)) body.run();
}

}  // namespace librun::cuda
