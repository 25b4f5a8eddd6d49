// SPDX-License-Identifier: Apache-2.0
// Private memory of a device, owned.
#pragma once

#include <memory>
#include <utility>

#include "kernels/device.hpp"

namespace librun {

/// Zeroed; move-only. T must be fine as zero bytes.
template <class T>
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// @throws Error{system}
  DeviceMemory(std::shared_ptr<Device> device, Memory memory, std::size_t size_bytes = sizeof(T))
      : device_(std::move(device)),
        data_(reinterpret_cast<T*>(device_->commit(nullptr, size_bytes, memory))),
        size_bytes_(size_bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(std::move(other.device_)),
        data_(std::exchange(other.data_, nullptr)),
        size_bytes_(other.size_bytes_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_) device_->release(reinterpret_cast<std::byte*>(data_), size_bytes_, false);
  }

  T* get() const { return data_; }
  T* operator->() const { return data_; }
  T& operator*() const { return *data_; }

 private:
  std::shared_ptr<Device> device_;
  T* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace librun
