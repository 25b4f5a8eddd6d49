// SPDX-License-Identifier: Apache-2.0
// The protocol of one block: the gate, its steps, its waits, and how it ends.
#pragma once

#include "kernels/cuda/access.cuh"
#include "kernels/cuda/device_state.hpp"
#include "kernels/cuda/layout.hpp"

namespace librun::cuda {

/// Block b of every rank forms a team of its own, with its own counter, lines, pieces and flags. In
/// each step it sends something to, and receives something from, block b of every peer:
///
///   block b of rank p | begin s | send s | receive s from all | end s | begin s+1 | ...
///
/// Why two parities suffice: I write at the parity of s again in step s+2, after my whole block has
/// ended s+1, so after it has received s+1 from block b of every peer, which sent that only after
/// its whole block had consumed s (end is a barrier of the block). Blocks of other numbers share
/// nothing, so the grid may change from launch to launch. It is the same on all ranks for a call.
class BlockSteps {
 public:
  __device__ explicit BlockSteps(DeviceState* state)
      : state_(*state), step_(state->step[blockIdx.x]) {}

  /// The gate, and what the announcement said. @return false: leave at once, all threads alike
  __device__ bool enter(bool announced) {
    if (!gate_open()) {
      if (blockIdx.x == 0 && threadIdx.x == 0) count_caught();
      return false;
    }
    return !announced || load_relaxed(&state_.refused) == 0;
  }
  __device__ bool gate_open() const {
    return __syncthreads_or(load_relaxed(&state_.control.gate) != kGateOpen) == 0;
  }

  __device__ int rank() const { return static_cast<int>(state_.control.rank); }
  __device__ int world() const { return static_cast<int>(state_.control.world); }
  __device__ const ArenaLayout& layout() const { return state_.control.layout; }
  __device__ const ControlBlock& control() const { return state_.control; }
  __device__ std::uint32_t epoch() const { return step_; }

  __device__ void begin() { step_ = next(step_); }

  /// Line `index` that `source` writes in the arena of `owner` in this step.
  __device__ std::byte* line(int owner, int source, std::uint32_t index) const {
    const std::uint64_t at = place(source) * layout().lines_per_block + index;
    return state_.control.arena[owner] + layout().lines[parity()] + at * kLlLineBytes;
  }
  /// The piece of staging that `source` writes in the arena of `owner` in this step.
  __device__ std::byte* staging(int owner, int source) const {
    return state_.control.arena[owner] + layout().staging[parity()] +
           place(source) * layout().slice_bytes;
  }
  /// The same of the step before.
  __device__ std::byte* previous_staging(int owner, int source) const {
    return state_.control.arena[owner] + layout().staging[parity() ^ 1] +
           place(source) * layout().slice_bytes;
  }
  __device__ std::byte* result(int owner, int source) const {
    return state_.control.arena[owner] + layout().result[parity()] +
           place(source) * layout().slice_bytes;
  }

  /// Waits until `ready()`, by one thread. @return false when the wait was given up, and reported
  template <class Ready>
  __device__ bool wait(int peer, Ready&& ready) {
    constexpr std::uint32_t kPollsPerLook = 1024;
    std::uint64_t start = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      if (ready()) return true;
      if (polls % kPollsPerLook != 0) continue;
      const HostWords& words = *state_.control.words;
      if (load_relaxed(&words.abort) != 0) return report(Outcome::aborted, peer);
      const std::uint64_t now = now_ns();
      if (start == 0) start = now;
      if (now - start >= state_.control.wait_ns) return report(Outcome::timeout, peer);
      if (now - start > 1000000) __nanosleep(1000);
    }
  }

  /// Tells every peer that this block has written all of the step, and waits for the same from all.
  /// @return false: leave, all threads alike
  __device__ bool exchange_flags() {
    __syncthreads();
    bool failed = false;
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < world() && peer != rank()) {
      store_release(flag(peer, rank()), step_);
      // A fast peer may be one step further already, and never two: it would need this step's flag.
      // Steps without flags come in between, so that "later" means nothing here.
      failed = !wait(peer, [&] {
        const std::uint32_t theirs = load_acquire(flag(rank(), peer));
        return theirs == step_ || theirs == next(step_);
      });
    }
    return end(failed);
  }

  /// A barrier of the block. @return false when a thread has failed: leave, all threads alike
  __device__ bool end(bool failed) { return __syncthreads_or(failed) == 0; }

  /// Keeps the counter for the next launch; every thread may call it, after the last barrier.
  __device__ void leave() {
    if (threadIdx.x == 0) state_.step[blockIdx.x] = step_;
  }

  /// The first failure of the communicator is what the host is told. @return false
  __device__ bool report(Outcome outcome, int peer) {
    if (atomicExch(&state_.failed, 1u) != 0) return false;
    HostWords& words = *state_.control.words;
    words.fatal_rank = static_cast<std::uint32_t>(peer);
    words.fatal_step = step_;
    fence_system();
    words.fatal = static_cast<std::uint32_t>(outcome);
    // What is queued behind this launch must not wait once more.
    state_.control.gate = kGateClosed;
    fence_system();
    return false;
  }

 private:
  /// Steps wrap past 0, which lines and flags hold at first, and past 1, so that parities
  /// alternate. A line that nobody writes for exactly 2^32 - 2 steps would pass for new; the
  /// smallest takes hours.
  __device__ static std::uint32_t next(std::uint32_t step) {
    return step == 0xffffffffu ? 2 : step + 1;
  }
  __device__ std::uint32_t parity() const { return step_ & 1; }
  __device__ std::uint64_t place(int source) const {
    return static_cast<std::uint64_t>(source) * layout().max_blocks + blockIdx.x;
  }
  __device__ std::uint32_t* flag(int owner, int source) const {
    return reinterpret_cast<std::uint32_t*>(state_.control.arena[owner] + layout().flags +
                                            place(source) * kFlagBytes);
  }
  /// A launch that fails leaves a closed gate behind, which is no suspend.
  __device__ void count_caught() {
    if (load_relaxed(&state_.failed) != 0) return;
    HostWords& words = *state_.control.words;
    *reinterpret_cast<volatile std::uint64_t*>(&words.caught) = atomicAdd(&state_.caught, 1u) + 1;
  }

  DeviceState& state_;
  std::uint32_t step_;
};

}  // namespace librun::cuda
