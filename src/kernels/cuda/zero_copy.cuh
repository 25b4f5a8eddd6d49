// SPDX-License-Identifier: Apache-2.0
// zero_copy: reads the peers' registered inputs, and writes their registered outputs where it can.
#pragma once

#include "kernels/cuda/two_shot.cuh"

namespace librun::cuda {

// The announcement told where every rank's buffers lie, so all take one branch.
template <class V>
class ZeroCopy {
  using T = typename V::Type;

 public:
  __device__ ZeroCopy(const KernelArgs& args, BlockSteps<V::kWorld>& steps)
      : args_(args), steps_(steps), size_(args.count * sizeof(T)) {}

  __device__ void run() {
    bool all_send = true;
    bool all_recv = true;
    for (int peer = 0; peer < steps_.world(); ++peer) {
      all_send = all_send && input_of(peer).base;
      all_recv = all_recv && output_of(peer).base;
    }
    if (all_send && all_recv) return push_results();
    TwoShot<V> staged(args_, steps_);
    // Nobody overwrites an input that a peer still reads: an element of the output is written when
    // its result has come, which its owner sent after it had read all inputs of it.
    if (all_send) return staged.run_mapped([&](int source) { return input_of(source); });
    staged.run(true);
  }

 private:
  /// Where a rank's buffer is mapped here; null when its slot is staged, too short, or not the
  /// buffer's any more.
  __device__ const std::byte* resolve(int slot, unsigned number, std::uint64_t offset,
                                      int peer) const {
    if (slot < 0 || slot >= LIBRUN_MAX_BUFFERS) return nullptr;
    const Slot& row = steps_.control().slots[slot];
    if (!row.live || row.staged || row.number != number || offset > row.size_bytes ||
        size_ > row.size_bytes - offset)
      return nullptr;
    return row.base[peer] + offset;
  }
  __device__ UserRange<T> input_of(int peer) const {
    const Announcement& call = args_.state->announced[peer];
    return {resolve(call.send_slot, call.send_number, call.send_offset, peer), size_};
  }
  __device__ UserRange<T> output_of(int peer) const {
    const Announcement& call = args_.state->announced[peer];
    return {resolve(call.recv_slot, call.recv_number, call.recv_offset, peer), size_};
  }

  // Each rank reduces its slice of the whole and writes it to every output. In place is safe: only
  // the owner of a slice touches that slice, of any buffer, before the flags.
  __device__ void push_results() {
    const UserRange<T> send(args_.send, size_);
    const UserRange<T> recv(args_.recv, size_);
    const int world = steps_.world();
    const std::uint64_t part =
        round_up((size_ + world - 1) / static_cast<unsigned>(world), kVectorBytes);
    const std::uint64_t begin = part * static_cast<unsigned>(steps_.rank());
    const std::uint64_t bytes = clip(begin, part, size_);
    const std::uint64_t block_bytes = blockDim.x * kVectorBytes;
    for (std::uint64_t at = blockIdx.x * block_bytes + threadIdx.x * kVectorBytes; at < bytes;
         at += steps_.teams() * block_bytes) {
      const std::uint64_t in_whole = begin + at;
      const auto sum = reduce_ranks<T, V::kSum, V::kWorld, 4>(world, args_.op, [&](int source) {
        return source == steps_.rank() ? send.load(in_whole) : input_of(source).load(in_whole);
      });
      recv.store(in_whole, sum);
      for (int k = 1; k < world; ++k) output_of((steps_.rank() + k) % world).store(in_whole, sum);
    }
    steps_.begin();
    if (steps_.exchange_flags()) steps_.leave();
  }

  const KernelArgs& args_;
  BlockSteps<V::kWorld>& steps_;
  std::uint64_t size_;
};

template <class V>
__global__ void __launch_bounds__(kMaxThreads, 2)
    zero_copy(const __grid_constant__ KernelArgs args) {
  const Peers<V::kWorld> peers(peers_of(args));
  BlockSteps<V::kWorld> steps(args.state, peers);
  if (!steps.in_team()) return;
  // All threads alike: every way through it has barriers.
  const bool admitted = steps.enter(args.announced);
  steps.count_if_caught();
  if (steps.end(!admitted)) ZeroCopy<V>(args, steps).run();
}

}  // namespace librun::cuda
