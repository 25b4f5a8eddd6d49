// SPDX-License-Identifier: Apache-2.0
// one_shot: every rank pushes all of its input to every peer, and reduces everything.
#pragma once

#include "kernels/cuda/armed_ring.cuh"
#include "kernels/cuda/geometry.hpp"

namespace librun::cuda {

/// Lines that a thread has in flight in each step: few peers leave registers for more.
template <int World>
inline constexpr int kOneShotLines = World == 2 ? 4 : 1;

// A step is a piece of lines for each block, and of a piece a thread has every blockDim-th line:
//
//   step    | piece of block 0 | piece of block 1 | ... |
//   piece   | threads 0, 1, ...   | threads 0, 1, ...   | ... |   rows
template <class V>
class OneShot {
  using T = typename V::Type;
  using Steps = BlockSteps<V::kWorld>;
  static constexpr int kLines = kOneShotLines<V::kWorld>;

 public:
  __device__ OneShot(const KernelArgs& args, Steps& steps)
      : steps_(steps),
        ring_(steps.peers(), RingOf::inputs),
        op_(args.op),
        thread_(threadIdx.x),
        row_(blockDim.x),
        lines_(args.lines) {
    ring_.settle();  // the table's loads, before anything waits for one of them
    const bool aligned = is_aligned(args.send) && is_aligned(args.recv);
    const std::uint32_t piece =
        share_of(args, steps.peers().table().ring_lines, blockDim.x * kLines);
    stride_ = steps.teams() * piece;
    const std::uint32_t first = blockIdx.x * piece + thread_;
    send_ = args.send + first * kVectorBytes;
    recv_ = args.recv + first * kVectorBytes;
    left_ = args.count * sizeof(T) - first * kVectorBytes;
    room_ = static_cast<std::int32_t>(piece - thread_);
    whole_room_ = aligned ? room_ : 0;
    now_ = rows_at(left_);
    single_ = lines_ <= stride_;
  }
  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() {
    return ring_.settle() + cuda::settle(send_) + cuda::settle(recv_) + cuda::settle(left_) +
           cuda::settle(now_.present) + cuda::settle(now_.whole) + cuda::settle(thread_) +
           cuda::settle(row_) + cuda::settle(single_);
  }

  /// The input of the first step; needs no gate.
  __device__ void prepare() { load(send_, left_, now_, own_); }

  __device__ void run(bool admitted) {
    if (single_ == 0) return run_pipelined(admitted);
    if (!admitted) return;
    steps_.begin();
    push(now_, steps_.epoch(), own_);
    steps_.leave();
    receive();
  }

 private:
  // A thread meets the same thread of its peers only: no barrier but between rounds.
  __device__ void run_pipelined(bool admitted) {
    bool failed = !admitted;
    while (true) {
      const std::uint64_t round = std::uint64_t{kRoundSteps} * stride_;
      const bool last_round = lines_ <= round;
      std::uint64_t rest = last_round ? lines_ : round;
      lines_ -= rest;
      if (!failed) push(now_, Steps::after(steps_.epoch()), own_);
      while (rest > 0 && !failed) {
        steps_.begin();
        const bool more = rest > stride_;
        const std::uint64_t step_bytes = stride_ * kVectorBytes;
        Rows then{};
        Vector<T> next[kLines];
        if (more) {
          then = rows_at(left_ - step_bytes);
          load(send_ + step_bytes, left_ - step_bytes, then, next);
          push(then, Steps::after(steps_.epoch()), next);
        }
        failed = !receive();
        rest -= more ? stride_ : rest;
        send_ += step_bytes;
        recv_ += step_bytes;
        left_ -= step_bytes;
        now_ = then;
#pragma unroll
        for (int u = 0; u < kLines; ++u) own_[u] = next[u];
      }
      if (last_round) break;
      if (!steps_.exchange_flags(failed)) return;
      now_ = rows_at(left_);
      load(send_, left_, now_, own_);
    }
    if (steps_.end(failed)) steps_.leave();
  }

  /// Of the lines of a thread in a step: how many there are, and how many of these can be moved as
  /// they are. The others come last.
  struct Rows {
    std::uint32_t present;
    std::uint32_t whole;
  };
  /// @param left bytes from the thread's first line to the end, negative beyond it
  __device__ Rows rows_at(std::uint64_t left) const {
    constexpr std::int64_t kMany = kMaxThreads * kLines;
    const auto lines = static_cast<std::int64_t>(left) >> 4;
    const auto here = static_cast<std::int32_t>(lines < kMany ? lines : kMany);
    const std::int32_t whole = min(here, whole_room_);
    const std::int32_t present = min(here + (left % kVectorBytes != 0 ? 1 : 0), room_);
    Rows rows{};
#pragma unroll
    for (int u = 0; u < kLines; ++u) {
      rows.present += present > static_cast<std::int32_t>(u * row_);
      rows.whole += whole > static_cast<std::int32_t>(u * row_);
    }
    return rows;
  }
  __device__ std::uint64_t row_bytes(int u) const { return u * row_ * kVectorBytes; }

  __device__ void load(const std::byte* from, std::uint64_t left, const Rows& rows,
                       Vector<T>* values) const {
#pragma unroll
    for (int u = 0; u < kLines; ++u)
      if (u < rows.whole) values[u] = load_vector<T>(from + row_bytes(u));
    if (rows.whole == rows.present) return;
#pragma unroll
    for (int u = 0; u < kLines; ++u)
      if (u >= rows.whole && u < rows.present)
        values[u] = load_part<T>(from + row_bytes(u), left - row_bytes(u));
  }
  __device__ void push(const Rows& rows, std::uint32_t step, const Vector<T>* values) const {
    const std::uint64_t at = ring_.offset(step, thread_);
#pragma unroll
    for (int u = 0; u < kLines; ++u)
      if (u < rows.present)
#pragma unroll
        for (int k = 1; k < steps_.world(); ++k)
          ring_.send(k, at + row_bytes(u), to_words(values[u]));
  }
  __device__ bool receive() {
    std::uint64_t at = ring_.offset(steps_.epoch(), thread_);
    cuda::settle(at);  // or each poll computes it anew
    const auto place = [&](int u) { return at + row_bytes(u); };
    Arrivals<V> arrivals[kLines];
    if (!await_all(steps_, ring_, arrivals, now_.present, place)) return false;
#pragma unroll
    for (int u = 0; u < kLines; ++u) {
      if (u >= now_.present) break;
      Vector<T> sum;
      if (!arrivals[u].take(steps_, ring_, place(u), op_, own_[u], sum)) return false;
      if (u < now_.whole)
        store_vector<T>(recv_ + row_bytes(u), sum);
      else
        store_part<T>(recv_ + row_bytes(u), left_ - row_bytes(u), sum);
    }
    return true;
  }

  Steps& steps_;
  ArmedRing<V::kWorld> ring_;
  librun_op_t op_;
  std::uint32_t thread_;
  std::uint32_t row_;        ///< lines from one of a thread to its next in a piece
  std::int32_t room_;        ///< lines of a piece from the thread's first on
  std::int32_t whole_room_;  ///< the same, where input and output are aligned; else 0
  std::uint32_t single_;     ///< one step is all: nothing to overlap, and no time to prepare it
  std::uint32_t stride_;     ///< lines of a step, of all blocks
  std::uint64_t lines_;      ///< of the rounds to come
  // Of this thread's first line of the step under way:
  const std::byte* send_;
  std::byte* recv_;
  std::uint64_t left_;  ///< bytes from there to the end, negative beyond it
  Rows now_;
  Vector<T> own_[kLines];
};

template <class V, class Args>
__global__ void __launch_bounds__(kMaxThreads, 2) one_shot(const __grid_constant__ Args all) {
  const KernelArgs& args = call_of(all);
  const Peers<V::kWorld> peers(peers_of(all));
  BlockSteps<V::kWorld> steps(args.state, peers);
  OneShot<V> body(args, steps);
  std::uint64_t settled = body.settle() + steps.settle();
  if (!steps.in_team(settled)) return;
  wait_for_predecessor(settled);
  const bool admitted = steps.enter(args.announced);
  body.prepare();
  body.run(admitted);
  steps.count_if_caught();
}

}  // namespace librun::cuda
