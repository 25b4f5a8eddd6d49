// SPDX-License-Identifier: Apache-2.0
// two_shot: every rank reduces its slice of each piece and pushes the result to every peer.
#pragma once

#include "kernels/cuda/one_shot.cuh"

namespace librun::cuda {

// Each piece of a block is a slice for each rank, each slice at most a line for each thread:
//
//   piece t of block b | slice of rank 0 | slice of rank 1 | ... |
//
// Per thread, with the scatter one piece ahead:
//
//   scatter p0 | scatter p1, reduce and push p0, gather p0 | scatter p2, reduce and push p1, ... |
//
// The ring of results is free when it is written again: a result of p(t) is pushed after the
// scatter of p(t) has come from every peer, each of which had gathered p(t-2) before it sent that.
template <class V>
class TwoShot {
  using T = typename V::Type;
  using Steps = BlockSteps<V::kWorld>;

 public:
  __device__ TwoShot(const KernelArgs& args, Steps& steps)
      : steps_(steps),
        inputs_(steps.peers(), RingOf::inputs),
        results_(steps.peers(), RingOf::results),
        op_(args.op),
        send_(args.send, args.count * sizeof(T)),
        recv_(args.recv, args.count * sizeof(T)),
        lines_(args.lines),
        teams_(steps.teams()),
        slice_(share_of(args, steps.peers().table().ring_lines, blockDim.x)) {
    // The table's loads, before anything waits for one of them.
    inputs_.settle();
    results_.settle();
  }

  __device__ void run(bool admitted) {
    bool failed = !admitted;
    const bool works = threadIdx.x < slice_;
    std::uint64_t base = 0;
    while (true) {
      const std::uint64_t round_end = end_of_round(base, stride(), lines_);
      if (works && !failed) scatter(base, Steps::after(steps_.epoch()));
      for (; base < round_end && !failed; base += stride()) {
        steps_.begin();
        if (!works) continue;
        if (base + stride() < round_end) scatter(base + stride(), Steps::after(steps_.epoch()));
        failed = !(reduce_own(base) && gather(base));
      }
      if (round_end >= lines_) break;
      if (!steps_.exchange_flags(failed)) return;
    }
    if (steps_.end(failed)) steps_.leave();
  }

  /// Where the inputs of all peers are mapped, nothing is scattered. @param input_of its UserRange
  template <class InputOf>
  __device__ void run_mapped(InputOf&& input_of) {
    bool failed = false;
    std::uint64_t base = 0;
    while (true) {
      const std::uint64_t round_end = end_of_round(base, stride(), lines_);
      for (; base < round_end && !failed; base += stride()) {
        steps_.begin();
        if (threadIdx.x >= slice_) continue;
        const std::uint64_t line = line_of(base, steps_.rank());
        if (takes_part(base, line)) {
          const std::uint64_t at = line * kVectorBytes;
          push_result(at,
                      reduce_ranks<T, V::kSum, V::kWorld, 4>(steps_.world(), op_, [&](int source) {
                        return source == steps_.rank() ? send_.load(at) : input_of(source).load(at);
                      }));
        }
        failed = !gather(base);
      }
      if (base >= lines_) break;
      if (!steps_.exchange_flags(failed)) return;
    }
    if (steps_.end(failed)) steps_.leave();
  }

 private:
  __device__ std::uint64_t stride() const {
    return teams_ * static_cast<unsigned>(steps_.world()) * slice_;
  }
  /// @param base where the pieces of this step begin, in lines
  __device__ std::uint64_t line_of(std::uint64_t base, int rank) const {
    const auto slice = static_cast<unsigned>(static_cast<int>(blockIdx.x) * steps_.world() + rank);
    return base + slice * slice_ + threadIdx.x;
  }
  /// What lies beyond the end reads as zero. The first line of a launch goes to every peer,
  /// whatever the count: what is known from launch to launch rests on it.
  __device__ bool takes_part(std::uint64_t base, std::uint64_t line) const {
    return line < lines_ || (base == 0 && threadIdx.x == 0);
  }
  __device__ int rank_after(int k) const {
    const int rank = steps_.rank() + k;
    return rank >= steps_.world() ? rank - steps_.world() : rank;
  }

  __device__ void scatter(std::uint64_t base, std::uint32_t step) const {
#pragma unroll
    for (int k = 1; k < steps_.world(); ++k) {
      const std::uint64_t line = line_of(base, rank_after(k));
      if (takes_part(base, line))
        inputs_.send(k, inputs_.offset(step, threadIdx.x),
                     to_words(send_.load(line * kVectorBytes)));
    }
  }
  __device__ bool reduce_own(std::uint64_t base) {
    const std::uint64_t line = line_of(base, steps_.rank());
    if (!takes_part(base, line)) return true;
    const std::uint64_t at = line * kVectorBytes;
    const std::uint64_t place = inputs_.offset(steps_.epoch(), threadIdx.x);
    const Vector<T> own = send_.load(at);
    Arrivals<V> arrivals[1];
    Vector<T> sum;
    if (!await_all(steps_, inputs_, arrivals, 1, [&](int) { return place; }) ||
        !arrivals[0].take(steps_, inputs_, place, op_, own, sum))
      return false;
    push_result(at, sum);
    return true;
  }
  __device__ void push_result(std::uint64_t at, const Vector<T>& sum) const {
#pragma unroll
    for (int k = 1; k < steps_.world(); ++k)
      results_.send(k, results_.offset(steps_.epoch(), threadIdx.x), to_words(sum));
    recv_.store(at, sum);
  }
  __device__ bool gather(std::uint64_t base) {
    // In a loop: unrolled, the code would not fit where it is quick to fetch.
#pragma unroll 1
    for (int k = 1; k < steps_.world(); ++k) {
      const int source = rank_after(k);
      const std::uint64_t line = line_of(base, source);
      if (!takes_part(base, line)) continue;
      std::byte* const place = results_.place_of(k, results_.offset(steps_.epoch(), threadIdx.x));
      uint4 words = load_line(place);
      if (!results_.await(steps_, source, place, words)) return false;
      results_.arm(place);
      recv_.store(line * kVectorBytes, to_vector<T>(words));
    }
    return true;
  }

  Steps& steps_;
  ArmedRing<V::kWorld> inputs_;
  ArmedRing<V::kWorld> results_;
  librun_op_t op_;
  UserRange<T> send_;
  UserRange<T> recv_;
  std::uint64_t lines_;
  std::uint32_t teams_;
  std::uint64_t slice_;  ///< lines of each rank, of this block, in a step
};

template <class V, class Args>
__global__ void __launch_bounds__(kMaxThreads, 2) two_shot(const __grid_constant__ Args all) {
  const KernelArgs& args = call_of(all);
  const Peers<V::kWorld> peers(peers_of(all));
  BlockSteps<V::kWorld> steps(args.state, peers);
  TwoShot<V> body(args, steps);
  if (!steps.in_team()) return;
  wait_for_predecessor(1);
  body.run(steps.enter(args.announced));
  steps.count_if_caught();
}

}  // namespace librun::cuda
