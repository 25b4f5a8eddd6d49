// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory.hpp"

#include <fcntl.h>

#include <cstring>
#include <string>

#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/runtime.hpp"

namespace librun::cuda {
namespace {

CUdeviceptr as_driver(std::byte* address) { return reinterpret_cast<CUdeviceptr>(address); }
std::byte* as_bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

std::string cannot_get(std::size_t size_bytes) {
  return "cannot get " + std::to_string(size_bytes) + " bytes of device memory";
}
constexpr const char* kFreeMemory = "free device memory, or set LIBRUN_ARENA_BYTES lower.";

}  // namespace

DeviceMemoryPool::DeviceMemoryPool(int ordinal, bool legacy) : ordinal_(ordinal), legacy_(legacy) {
  if (legacy_) return;
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = ordinal;
  properties_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  check_driver(driver().mem_get_allocation_granularity(&granularity_bytes_, &properties_,
                                                       CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "cuMemGetAllocationGranularity", "the device has no exportable memory");
}

void DeviceMemoryPool::clear() noexcept {
  const std::lock_guard lock(mutex_);
  while (!blocks_.empty()) {
    std::byte* const address = blocks_.begin()->first;
    release(address, false);
    blocks_.erase(address);
  }
}

std::size_t DeviceMemoryPool::rounded(std::size_t size_bytes) const {
  return (size_bytes + granularity_bytes_ - 1) / granularity_bytes_ * granularity_bytes_;
}

/// Undoes its own part when it fails.
void DeviceMemoryPool::map_range(std::byte* address, std::size_t size_bytes,
                                 CUmemGenericAllocationHandle handle) {
  check_driver(driver().mem_map(as_driver(address), size_bytes, 0, handle, 0), "cuMemMap",
               "cannot map " + std::to_string(size_bytes) + " bytes");
  CUmemAccessDesc access{};
  access.location = properties_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = driver().mem_set_access(as_driver(address), size_bytes, &access, 1);
  if (result == CUDA_SUCCESS) return;
  driver().mem_unmap(as_driver(address), size_bytes);
  check_driver(result, "cuMemSetAccess",
               "device " + std::to_string(ordinal_) + " cannot reach the memory",
               "the GPUs need peer access to each other: see car_info.");
}

std::byte* DeviceMemoryPool::commit_exportable(std::byte* address, std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (legacy_) return commit_local(size_bytes);
  const std::size_t bytes = rounded(size_bytes);
  CUmemGenericAllocationHandle handle{};
  check_driver(driver().mem_create(&handle, bytes, &properties_, 0), "cuMemCreate",
               cannot_get(bytes), kFreeMemory);
  const bool fresh = address == nullptr;
  try {
    if (fresh) {
      CUdeviceptr reserved{};
      check_driver(driver().mem_address_reserve(&reserved, bytes, 0, 0, 0), "cuMemAddressReserve",
                   cannot_get(bytes), kFreeMemory);
      address = as_bytes(reserved);
    }
    map_range(address, bytes, handle);
  } catch (const Error&) {
    driver().mem_release(handle);
    if (fresh && address) driver().mem_address_free(as_driver(address), bytes);
    throw;
  }
  blocks_[address] = {Kind::range, bytes, handle};
  return address;
}

Exported DeviceMemoryPool::export_memory(std::byte* address) const {
  const std::lock_guard lock(mutex_);
  Exported exported;
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || block->second.kind != Kind::range) {
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof(handle) == sizeof(exported.handle));
    check(cudaIpcGetMemHandle(&handle, address), "cudaIpcGetMemHandle");
    std::memcpy(exported.handle.data(), &handle, sizeof(handle));
    return exported;
  }
  int fd = -1;
  check_driver(driver().mem_export_to_shareable_handle(&fd, block->second.handle,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle", "cannot export device memory",
               "check the limit of open files (ulimit -n).");
  // The driver's manual says nothing of it.
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  exported.fd = UniqueFd(fd);
  return exported;
}

std::byte* DeviceMemoryPool::map(const Exported& exported, std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  return exported.fd ? map_descriptor(exported.fd.get(), size_bytes)
                     : open_handle(exported, size_bytes);
}

std::byte* DeviceMemoryPool::open_handle(const Exported& exported, std::size_t size_bytes) {
  cudaIpcMemHandle_t handle{};
  std::memcpy(&handle, exported.handle.data(), sizeof(handle));
  void* address = nullptr;
  check(cudaIpcOpenMemHandle(&address, handle, cudaIpcMemLazyEnablePeerAccess),
        "cudaIpcOpenMemHandle", "the GPUs need peer access to each other: see car_info.");
  blocks_[static_cast<std::byte*>(address)] = {Kind::opened, size_bytes, 0};
  return static_cast<std::byte*>(address);
}

std::byte* DeviceMemoryPool::map_descriptor(int fd, std::size_t size_bytes) {
  const std::size_t bytes = rounded(size_bytes);
  CUmemGenericAllocationHandle handle{};
  void* const os_handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  check_driver(driver().mem_import_from_shareable_handle(&handle, os_handle,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "cuMemImportFromShareableHandle", "cannot import a peer's memory",
               "under Slurm use --gpus-per-node, not --gpus-per-task.");
  CUdeviceptr reserved{};
  try {
    check_driver(driver().mem_address_reserve(&reserved, bytes, 0, 0, 0), "cuMemAddressReserve",
                 "cannot reserve " + std::to_string(bytes) + " bytes of addresses");
    map_range(as_bytes(reserved), bytes, handle);
  } catch (const Error&) {
    driver().mem_release(handle);
    if (reserved) driver().mem_address_free(reserved, bytes);
    throw;
  }
  blocks_[as_bytes(reserved)] = {Kind::range, bytes, handle};
  return as_bytes(reserved);
}

std::byte* DeviceMemoryPool::commit_local(std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  void* address = nullptr;
  check(cudaMalloc(&address, size_bytes), "cudaMalloc", kFreeMemory);
  blocks_[static_cast<std::byte*>(address)] = {Kind::local, size_bytes, 0};
  return static_cast<std::byte*>(address);
}

std::byte* DeviceMemoryPool::commit_pinned(std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  void* address = nullptr;
  check(cudaHostAlloc(&address, size_bytes, cudaHostAllocMapped | cudaHostAllocPortable),
        "cudaHostAlloc", "check the limit of locked memory (ulimit -l).");
  blocks_[static_cast<std::byte*>(address)] = {Kind::pinned, size_bytes, 0};
  return static_cast<std::byte*>(address);
}

int DeviceMemoryPool::release(std::byte* address, bool keep_address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return 0;
  Block& block = found->second;
  if (block.kind != Kind::range) {
    const Kind kind = block.kind;
    blocks_.erase(found);
    if (kind == Kind::opened) return cudaIpcCloseMemHandle(address);
    return kind == Kind::local ? cudaFree(address) : cudaFreeHost(address);
  }
  if (block.handle) {
    if (const CUresult result = driver().mem_unmap(as_driver(address), block.size_bytes))
      return result;
    const CUmemGenericAllocationHandle handle = block.handle;
    block.handle = 0;
    if (const CUresult result = driver().mem_release(handle)) return result;
  }
  if (keep_address) return 0;
  const CUresult result = driver().mem_address_free(as_driver(address), block.size_bytes);
  blocks_.erase(found);
  return result;
}

std::optional<Allocation> find_user_allocation(const void* address, int ordinal) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return std::nullopt;
  }
  if (attributes.type != cudaMemoryTypeDevice || attributes.device != ordinal) return std::nullopt;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  int has_handle = 0;
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  const auto ask = [&](void* answer, CUpointer_attribute attribute) {
    return driver().pointer_get_attribute(answer, attribute, at) == CUDA_SUCCESS;
  };
  if (!ask(&has_handle, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) || !has_handle ||
      !ask(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) ||
      !ask(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE))
    return std::nullopt;
  return Allocation{as_bytes(base), size_bytes};
}

}  // namespace librun::cuda
