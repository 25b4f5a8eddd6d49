// SPDX-License-Identifier: Apache-2.0
// Memory of one CUDA device: exportable, mapped from a peer, local, and pinned.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "kernels/device.hpp"

namespace librun::cuda {

/// Not thread-safe. The device must be current. Sizes are rounded up to the driver's granularity
/// within, alike on all ranks. @throws Error{cuda} unless noexcept
class DeviceMemoryPool {
 public:
  explicit DeviceMemoryPool(int ordinal);
  ~DeviceMemoryPool() { clear(); }
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  /// Physical memory with a descriptor, at a reserved address; not zeroed.
  std::byte* commit_exportable(std::byte* address, std::size_t size_bytes);
  UniqueFd export_descriptor(std::byte* address) const;
  std::byte* commit_local(std::size_t size_bytes);
  std::byte* commit_pinned(std::size_t size_bytes);

  std::byte* map(int fd, std::size_t size_bytes);

  /// For whatever the functions above gave. @return 0, or a cudaError_t or CUresult
  int release(std::byte* address, bool keep_address) noexcept;
  void clear() noexcept;

 private:
  enum class Kind { range, local, pinned };
  struct Block {
    Kind kind;
    std::size_t size_bytes;
    CUmemGenericAllocationHandle handle;  // 0: a range without memory
  };

  std::size_t rounded(std::size_t size_bytes) const;
  void map_range(std::byte* address, std::size_t size_bytes, CUmemGenericAllocationHandle handle);

  int ordinal_;
  CUmemAllocationProp properties_{};
  std::size_t granularity_bytes_ = 0;
  std::map<std::byte*, Block> blocks_;
};

}  // namespace librun::cuda
