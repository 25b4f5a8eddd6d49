// SPDX-License-Identifier: Apache-2.0
// Lines that carry their epoch: of ll, and of announcements.
#pragma once

#include "kernels/cuda/block_steps.cuh"

namespace librun::cuda {

/// Where the line of one thread goes to and comes from. All of it is known before the launch in
/// front is over but the step.
template <int World>
class LinePlaces {
 public:
  __device__ LinePlaces(const BlockSteps<World>& steps, std::uint32_t index)
      : rows_(steps.peers().table().lines),
        even_(steps.line_offset(index)),
        odd_(even_ + steps.peers().table().parity_bytes) {}
  /// For wait_for_predecessor().
  __device__ std::uint64_t settle() {
    return rows_.settle() + cuda::settle(even_) + cuda::settle(odd_);
  }
  /// From the begin of each to the line of this step.
  __device__ std::uint64_t offset(std::uint32_t step) const { return step % 2 == 0 ? even_ : odd_; }
  __device__ std::byte* to(int k) const { return rows_.to(k); }
  /// Of source_row() i.
  __device__ const std::byte* from(int i) const { return rows_.from(i); }

 private:
  Rows<World> rows_;
  std::uint64_t even_;
  std::uint64_t odd_;
};

}  // namespace librun::cuda
