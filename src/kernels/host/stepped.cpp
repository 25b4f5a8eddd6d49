// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "kernels/host/bodies.hpp"

namespace librun::host {

// The barriers between the halves order the two: the staging of parity 0 is free when a publish
// starts, and complete when a reduce starts. The counters of the steps are not touched.
void run_stage_publish(const Work& work) {
  const ControlBlock& control = work.steps.control();
  std::memcpy(control.arena[control.rank] + control.layout.staging[0], work.args.send,
              work.size_bytes());
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void run_stage_reduce(const Work& work) {
  const ControlBlock& control = work.steps.control();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const void* sources[LIBRUN_MAX_WORLD];
  for (std::uint32_t peer = 0; peer < control.world; ++peer)
    sources[peer] = control.arena[peer] + control.layout.staging[0];
  work.reduce(work.args.recv, sources, static_cast<int>(control.world), work.args.count);
}

}  // namespace librun::host
