// SPDX-License-Identifier: Apache-2.0
// The CUDA half of device.cpp. What is freed is kept for the next allocation of that size: the
// tests allocate thousands of small buffers, and freeing pinned memory waits for the whole GPU.
#include "support/device_cuda.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace librun_test::cuda {
namespace {

constexpr std::size_t kAddressGranularity = std::size_t{2} << 20;

int gpu = 0;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Blocks by their size, rounded up to a power of two.
class Pool {
 public:
  using Allocate = cudaError_t (*)(void**, std::size_t);
  explicit Pool(Allocate allocate) : allocate_(allocate) {}

  void* take(std::size_t size_bytes) {
    const std::size_t rounded = round_up(size_bytes);
    const std::lock_guard lock(mutex_);
    std::vector<void*>& blocks = free_[rounded];
    if (blocks.empty()) {
      void* memory = nullptr;
      check(cudaSetDevice(gpu), "cudaSetDevice");  // this may be a new thread
      check(allocate_(&memory, rounded), "no memory of the device");
      return memory;
    }
    void* memory = blocks.back();
    blocks.pop_back();
    return memory;
  }
  void put(void* memory, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    free_[round_up(size_bytes)].push_back(memory);
  }

 private:
  static std::size_t round_up(std::size_t size_bytes) {
    return std::bit_ceil(size_bytes < 4096 ? std::size_t{4096} : size_bytes);
  }

  Allocate allocate_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
};

// Never destroyed: the driver may be gone by then.
Pool& pinned_pool() {
  static Pool* const pool = new Pool([](void** memory, std::size_t size_bytes) {
    return cudaHostAlloc(memory, size_bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  });
  return *pool;
}
Pool& device_pool() {
  static Pool* const pool = new Pool(
      [](void** memory, std::size_t size_bytes) { return cudaMalloc(memory, size_bytes); });
  return *pool;
}

/// A function of the driver, which may not be linked: machines without a GPU have none.
template <class Function>
Function driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found), name);
  if (found != cudaDriverEntryPointSuccess) throw std::runtime_error(name);
  return reinterpret_cast<Function>(address);
}

std::size_t whole_granules(std::size_t size_bytes) {
  return (size_bytes + kAddressGranularity - 1) / kAddressGranularity * kAddressGranularity;
}

CUdeviceptr as_device(void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

std::string use_gpu_of(int rank) {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  if (gpus == 0) return "no GPU";
  gpu = rank % gpus;
  const cudaError_t chosen = cudaSetDevice(gpu);
  return chosen == cudaSuccess ? "" : cudaGetErrorString(chosen);
}

void* allocate_pinned(std::size_t size_bytes) { return pinned_pool().take(size_bytes); }
void free_pinned(void* memory, std::size_t size_bytes) noexcept {
  pinned_pool().put(memory, size_bytes);
}
void* allocate(std::size_t size_bytes) { return device_pool().take(size_bytes); }
void free(void* memory, std::size_t size_bytes) noexcept { device_pool().put(memory, size_bytes); }

void copy(void* to, const void* from, std::size_t size_bytes) {
  check(cudaMemcpy(to, from, size_bytes, cudaMemcpyDefault), "cudaMemcpy");
  // From pageable memory it returns before the last part has arrived, and streams that do not block
  // would not wait for it.
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

bool reserve_addresses(void* address, std::size_t size_bytes) {
  static const auto reserve =
      driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  CUdeviceptr got = 0;
  if (reserve(&got, whole_granules(size_bytes), 0, as_device(address), 0) != CUDA_SUCCESS)
    return false;
  if (got == as_device(address)) return true;
  free_addresses(reinterpret_cast<void*>(got), size_bytes);
  return false;
}

void free_addresses(void* address, std::size_t size_bytes) noexcept {
  static const auto give_back = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  give_back(as_device(address), whole_granules(size_bytes));
}

void* create_stream() {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

void destroy_stream(void* stream) noexcept { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }

}  // namespace librun_test::cuda
