// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cuda/access.cuh"
#include "lines/line_storm.hpp"

namespace librun_test {
namespace {

constexpr std::uint32_t kThreads = 256;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Each word tells the round, so that no mixture of two lines passes for one.
__device__ uint4 line_of(std::uint32_t round, std::uint32_t index) {
  return make_uint4(round, round * 0x9e3779b1u + index, ~round ^ index << 8,
                    (round << 16 | round >> 16) + 0x5bd1e995u * index);
}
__device__ bool is_torn(uint4 line, std::uint32_t index) {
  const uint4 right = line_of(line.x, index);
  return line.y != right.y || line.z != right.z || line.w != right.w;
}

__global__ void first_round(std::byte* own) {
  const std::uint32_t index = blockIdx.x * kThreads + threadIdx.x;
  librun::cuda::store_line(own + std::uint64_t{index} * 16, line_of(0, index));
}

__global__ void __launch_bounds__(kThreads)
    storm(const std::byte* own, std::byte* peer, std::uint32_t rounds, std::uint32_t stride,
          StormCounts* counts) {
  const std::uint32_t index = (blockIdx.x * kThreads + threadIdx.x) * stride % StormMemory::kLines;
  const std::uint64_t at = std::uint64_t{index} * 16;
  std::uint32_t changes = 0;
  std::uint32_t torn = 0;
  std::uint32_t last = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    librun::cuda::store_line(peer + at, line_of(round, index));
    const uint4 line = librun::cuda::load_line(own + at);
    changes += line.x != last;
    torn += is_torn(line, index);
    last = line.x;
  }
  using Counter = unsigned long long;
  atomicAdd_system(reinterpret_cast<Counter*>(&counts->reads), Counter{rounds});
  atomicAdd_system(reinterpret_cast<Counter*>(&counts->changes), Counter{changes});
  atomicAdd_system(reinterpret_cast<Counter*>(&counts->torn), Counter{torn});
}

}  // namespace

StormMemory::StormMemory() {
  static_assert(sizeof(cudaIpcMemHandle_t) == kHandleBytes);
  // An allocation of its own: a handle opens all of the one that it lies in.
  constexpr std::size_t kAllocationBytes = std::size_t{2} << 20;
  check(cudaMalloc(&own_, kAllocationBytes), "cudaMalloc");
  check(cudaMallocHost(&counts_, sizeof(StormCounts)), "cudaMallocHost");
  first_round<<<kLines / kThreads, kThreads>>>(static_cast<std::byte*>(own_));
  check(cudaDeviceSynchronize(), "first_round");
}

StormMemory::~StormMemory() {
  if (peer_) cudaIpcCloseMemHandle(peer_);
  cudaFreeHost(counts_);
  cudaFree(own_);
}

void StormMemory::export_to(void* handle) const {
  cudaIpcMemHandle_t exported;
  check(cudaIpcGetMemHandle(&exported, own_), "cudaIpcGetMemHandle");
  std::memcpy(handle, &exported, kHandleBytes);
}

void StormMemory::open_peer(const void* handle) {
  cudaIpcMemHandle_t exported;
  std::memcpy(&exported, handle, kHandleBytes);
  check(cudaIpcOpenMemHandle(&peer_, exported, cudaIpcMemLazyEnablePeerAccess),
        "cudaIpcOpenMemHandle");
}

StormCounts StormMemory::run(std::uint32_t rounds, std::uint32_t stride) {
  *counts_ = {};
  storm<<<kLines / kThreads, kThreads>>>(static_cast<const std::byte*>(own_),
                                         static_cast<std::byte*>(peer_ ? peer_ : own_), rounds,
                                         stride, counts_);
  check(cudaDeviceSynchronize(), "storm");
  return *counts_;
}

}  // namespace librun_test
