// SPDX-License-Identifier: Apache-2.0
// The launchers: from run-time types to kernels. Each returns what its own launch said.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device_state.hpp"

namespace librun::cuda {

struct Geometry {
  std::uint32_t n_blocks;
  std::uint32_t n_threads;
  cudaStream_t stream;
  /// The kernel begins with wait_for_predecessor(): it may come while the one in front still runs.
  bool early = false;
};

struct Shape {
  librun_dtype_t dtype;
  int world;
  Geometry geometry;
};

/// Threads of a block of the kernels without teams.
inline constexpr std::uint32_t kPlainThreads = 256;

/// A step each thread a line; the data carry their epoch.
cudaError_t launch_ll(const KernelArgs& args, const Shape& shape);
/// Armed lines, pushed.
cudaError_t launch_one_shot(const KernelArgs& args, const Shape& shape);
cudaError_t launch_two_shot(const KernelArgs& args, const Shape& shape);
/// After an announcement.
cudaError_t launch_zero_copy(const KernelArgs& args, const Shape& shape);
/// The first three, for sums of float.
cudaError_t launch_baked(const BakedArgs& args, const Shape& shape);

/// Tells the peers of this call and hears of theirs; what follows does nothing when they differ.
cudaError_t launch_announce(DeviceState* state, const Announcement& mine, bool compare,
                            cudaStream_t stream);
/// A world of one.
cudaError_t launch_copy(const KernelArgs& args, std::uint64_t size_bytes, const Geometry& geometry);
/// The halves of stepped.
cudaError_t launch_stage_publish(const KernelArgs& args, std::uint64_t size_bytes,
                                 const Geometry& geometry);
cudaError_t launch_stage_reduce(const KernelArgs& args, const Shape& shape);
/// @param items in device memory
cudaError_t launch_probe(const ProbeItem* items, int n_items, int rank, cudaStream_t stream);
/// Fills with one pattern. @param size_bytes a multiple of 16
cudaError_t launch_arm(std::byte* at, std::uint64_t size_bytes, const LineWords& pattern,
                       const Geometry& geometry);

}  // namespace librun::cuda
