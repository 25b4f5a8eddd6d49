// SPDX-License-Identifier: Apache-2.0
// The protocol of one block: the gate, its steps, its waits, and how it ends.
#pragma once

#include "kernels/cuda/access.cuh"
#include "kernels/cuda/layout.hpp"
#include "kernels/cuda/peers.cuh"

namespace librun::cuda {

/// The first failure of the communicator is what the host is told.
__device__ inline void report(DeviceState& state, Outcome outcome, std::uint32_t step, int peer) {
  if (atomicExch(&state.failed, 1u) != 0) return;
  HostWords& words = *state.control.words;
  words.fatal_rank = static_cast<std::uint32_t>(peer);
  words.fatal_step = step;
  fence_system();
  words.fatal = static_cast<std::uint32_t>(outcome);
  // What is queued behind this launch must not wait once more.
  state.control.gate = kGateClosed;
  fence_system();
}

/// Looks at the abort word and the clock. Out of line: it would be in the way of what runs in every
/// call.
/// @param start_ns when the wait began, 0 at first
/// @return the same, known now; 0: the wait is given up, and reported
static __device__ __noinline__ std::uint64_t look_around(DeviceState& state, std::uint32_t step,
                                                         int peer, std::uint64_t start_ns) {
  const std::uint64_t now = now_ns();
  if (start_ns == 0) start_ns = now;
  const bool aborted = load_relaxed(&state.control.words->abort) != 0;
  if (aborted || now - start_ns >= state.control.wait_ns) {
    report(state, aborted ? Outcome::aborted : Outcome::timeout, step, peer);
    return 0;
  }
  if (now - start_ns > 1000000) __nanosleep(1000);
  return start_ns;
}

/// Block b of every rank forms a team of its own, with its own counter, lines and flags. In each
/// step it sends something to, and receives something from, block b of every peer:
///
///   block b of rank p | begin s | send s | receive s from all | end s | begin s+1 | ...
///
/// Why two parities suffice: I write at the parity of s again in step s+2, after my whole block has
/// ended s+1, so after it has received s+1 from block b of every peer, which sent that only after
/// its whole block had consumed s (end is a barrier of the block, or the end of the launch). Blocks
/// of other numbers share nothing, so the grid may change from launch to launch. It is the same on
/// all ranks for a call.
///
/// From launch to launch more is known: who has received anything of a peer's launch knows that the
/// peer's launches before it are over, with all of their blocks.
template <int World>
class BlockSteps {
 public:
  __device__ BlockSteps(DeviceState* state, const Peers<World>& peers)
      : state_(*state), peers_(peers), counters_(state->step[blockIdx.x]), thread_(threadIdx.x) {}

  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() { return cuda::settle(counters_) + cuda::settle(thread_); }

  /// The gate, and what the announcement said; takes up the counter. Of this thread alone: the gate
  /// may close meanwhile, and then others of the block may have found it open. A launch that read
  /// the table before its wait, while a resume wrote it anew, finds another gate than the table's.
  /// @return false: take no part, but in count_if_caught()
  __device__ bool enter(bool announced) {
    gate_ = load_relaxed(&state_.control.gate);
    step_ = load_relaxed(&counters_[thread_ / kWarp]);
    __syncwarp();  // leave() writes it
    const std::uint32_t refused = announced ? load_relaxed(&state_.refused) : 0;
    return is_open() && refused == 0;
  }
  /// After enter, where it costs no time: tells the host of a launch whose first thread found the
  /// gate closed. One that failed leaves a closed gate behind, which is no suspend.
  __device__ void count_if_caught() {
    if (is_open() || blockIdx.x != 0 || thread_ != 0) return;
    if (load_relaxed(&state_.failed) != 0) return;
    HostWords& words = *state_.control.words;
    *reinterpret_cast<volatile std::uint64_t*>(&words.caught) = atomicAdd(&state_.caught, 1u) + 1;
  }
  /// The gate alone, of a launch that is not counted.
  __device__ bool enter_quietly() {
    gate_ = load_relaxed(&state_.control.gate);
    step_ = load_relaxed(&counters_[thread_ / kWarp]);
    return __syncthreads_or(!is_open()) == 0;
  }

  /// Blocks of a launch that form teams. A graph may be older than the layout, and have more.
  __device__ std::uint32_t teams() const {
    const std::uint32_t most = peers_.max_blocks();
    return gridDim.x < most ? gridDim.x : most;
  }
  /// Asked before the wait for the launch in front: a block that has no place takes none on the
  /// GPU.
  __device__ bool in_team() const { return blockIdx.x < peers_.max_blocks(); }
  /// The same, once all of `settled` is known: the assembler would ask as soon as it can, and put
  /// the loads that are left behind the question, a second way to the L2 cache. Never zero then.
  __device__ bool in_team(std::uint64_t& settled) const {
    settled = in_team() ? settled : 0;
    cuda::settle(settled);
    return settled != 0;
  }

  __device__ int rank() const { return peers_.rank(); }
  __device__ int world() const { return peers_.world(); }
  __device__ const Peers<World>& peers() const { return peers_; }
  __device__ const ControlBlock& control() const { return state_.control; }
  __device__ std::uint32_t epoch() const { return step_; }

  __device__ void begin() { step_ = after(step_); }
  /// Steps wrap past 0, which lines and flags hold at first, to a multiple of the ring's slots:
  /// these and parities go on in turn. A line that nobody writes for exactly 2^32 - 8 steps would
  /// pass for new; the smallest takes hours.
  __device__ static std::uint32_t after(std::uint32_t step) {
    return step == 0xffffffffu ? kRingSlots : step + 1;
  }

  /// From the first line of a row of PeerTable::lines to one of this block, of even steps.
  __device__ std::uint32_t line_offset(std::uint32_t index) const {
    return static_cast<std::uint32_t>((blockIdx.x * peers_.table().lines_per_block + index) *
                                      kLineBytes);
  }

  /// Waits until `missing()` gives no rank (-1), by one thread.
  /// @return false when the wait was given up, and reported
  template <class Missing>
  __device__ bool wait(Missing&& missing) {
    constexpr std::uint32_t kPollsPerLook = 1024;
    std::uint64_t start = 0;
    for (std::uint32_t polls = 1;; ++polls) {
      const int peer = missing();
      if (peer < 0) return true;
      if (polls % kPollsPerLook != 0) continue;
      start = look_around(state_, step_, peer, start);
      if (start == 0) return false;
    }
  }

  /// Tells every peer that this block has written all of the step, and waits for the same from all.
  /// @param failed of this thread, before
  /// @return false: leave, all threads alike
  __device__ bool exchange_flags(bool failed = false) {
    if (!end(failed)) return false;
    const int peer = static_cast<int>(thread_);
    if (peer < world() && peer != rank()) {
      store_release(flag(peers_.arena_of(peer), rank()), step_);
      // A fast peer may be one step further already, and never two: it would need this step's flag.
      // Steps without flags come in between, so that "later" means nothing here.
      const std::uint32_t* from = flag(peers_.own_arena(), peer);
      failed = !wait([&] {
        const std::uint32_t theirs = load_acquire(from);
        return theirs == step_ || theirs == after(step_) ? -1 : peer;
      });
    }
    return end(failed);
  }

  /// A barrier of the block. @return false when a thread has failed: leave, all threads alike
  __device__ bool end(bool failed) { return __syncthreads_or(failed) == 0; }

  /// Keeps the counter for the next launch; every thread calls it, once, in or after the last step.
  /// A warp has taken up its own copy before it writes here, and this launch's warps take up no
  /// other. The next launch may have more of them, so that each warp writes the copies of those
  /// too:
  ///
  ///   3 warps   | 0 | 1 | 2 | 0 | 1 | 2 | 0 | 1 |   which warp writes which of the copies
  __device__ void leave() {
    const std::uint32_t copy = thread_ / kWarp + thread_ % kWarp * (blockDim.x / kWarp);
    if (copy < kMaxWarps) counters_[copy] = step_;
  }

 private:
  __device__ bool is_open() const { return gate_ == peers_.open_gate(); }
  __device__ std::uint32_t* flag(std::byte* arena, int source) const {
    const std::uint32_t place = static_cast<unsigned>(source) * peers_.max_blocks() + blockIdx.x;
    return reinterpret_cast<std::uint32_t*>(arena + peers_.table().flags + place * kFlagBytes);
  }

  DeviceState& state_;
  const Peers<World>& peers_;
  std::uint32_t* counters_;  ///< of this block's warps: the last step that it has taken
  std::uint32_t thread_;
  std::uint32_t gate_ = kGateClosed;
  std::uint32_t step_ = 0;
};

}  // namespace librun::cuda
