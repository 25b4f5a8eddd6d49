// SPDX-License-Identifier: Apache-2.0
// The launchers: from run-time types to kernels. Each returns what its own launch said.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

struct Shape {
  librun_dtype_t dtype;
  int world;
  std::uint32_t n_blocks;
};

/// A step each n_blocks * lines_per_block lines; the data carry their epoch.
cudaError_t launch_ll(const KernelArgs& args, const Shape& shape, cudaStream_t stream);
/// one_shot, two_shot and zero_copy.
cudaError_t launch_chunked(const KernelArgs& args, const Shape& shape, cudaStream_t stream);

/// Tells the peers of this call and hears of theirs; what follows does nothing when they differ.
cudaError_t launch_announce(DeviceState* state, const Announcement& mine, bool compare,
                            cudaStream_t stream);
/// A world of one.
cudaError_t launch_copy(const KernelArgs& args, std::uint64_t size_bytes, cudaStream_t stream);
/// The halves of stepped.
cudaError_t launch_stage_publish(const KernelArgs& args, std::uint64_t size_bytes,
                                 cudaStream_t stream);
cudaError_t launch_stage_reduce(const KernelArgs& args, const Shape& shape, cudaStream_t stream);
/// @param items in device memory
cudaError_t launch_probe(const ProbeItem* items, int n_items, int rank, cudaStream_t stream);

}  // namespace librun::cuda
