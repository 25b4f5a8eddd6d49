// SPDX-License-Identifier: Apache-2.0
// Memory of one CUDA device: exportable, mapped from a peer, local, and pinned.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "kernels/device.hpp"

namespace librun::cuda {

/// Thread-safe: memory of one communicator may be registered with another. The device must be
/// current. Sizes are rounded up to the driver's granularity
/// within, alike on all ranks. @throws Error{cuda} unless noexcept
class DeviceMemoryPool {
 public:
  /// @param legacy exportable memory comes from cudaMalloc and is exported as a handle
  DeviceMemoryPool(int ordinal, bool legacy);
  ~DeviceMemoryPool() { clear(); }
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  /// Physical memory at a reserved address; not zeroed. Legacy: wherever cudaMalloc says.
  std::byte* commit_exportable(std::byte* address, std::size_t size_bytes);
  /// Also for the start of a cudaMalloc allocation of the user.
  Exported export_memory(std::byte* address) const;
  std::byte* commit_local(std::size_t size_bytes);
  std::byte* commit_pinned(std::size_t size_bytes);

  std::byte* map(const Exported& exported, std::size_t size_bytes);

  /// For whatever the functions above gave. @return 0, or a cudaError_t or CUresult
  int release(std::byte* address, bool keep_address) noexcept;
  void clear() noexcept;

 private:
  enum class Kind { range, local, pinned, opened };
  struct Block {
    Kind kind;
    std::size_t size_bytes;
    CUmemGenericAllocationHandle handle;  // 0: a range without memory
  };

  std::byte* map_descriptor(int fd, std::size_t size_bytes);
  std::byte* open_handle(const Exported& exported, std::size_t size_bytes);
  std::size_t rounded(std::size_t size_bytes) const;
  void map_range(std::byte* address, std::size_t size_bytes, CUmemGenericAllocationHandle handle);

  int ordinal_;
  bool legacy_;
  CUmemAllocationProp properties_{};
  std::size_t granularity_bytes_ = 0;
  mutable std::recursive_mutex mutex_;
  std::map<std::byte*, Block> blocks_;
};

/// The cudaMalloc allocation of the user around `address`. @return nothing for memory of another
/// kind (pools, managed, mapped by hand, host) or device: peers cannot open it
std::optional<Allocation> find_user_allocation(const void* address, int ordinal);

}  // namespace librun::cuda
