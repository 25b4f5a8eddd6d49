// SPDX-License-Identifier: Apache-2.0
// A peer's segment, mapped into this process.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/device.hpp"

namespace librun::ipc {

/// Move-only; closes once.
class Mapping {
 public:
  Mapping() = default;
  /// @throws Error{system}
  Mapping(std::shared_ptr<Device> device, const Exported& exported, std::size_t size_bytes)
      : device_(std::move(device)),
        address_(device_->map(exported, size_bytes)),
        size_bytes_(size_bytes) {}
  Mapping(Mapping&& other) noexcept
      : device_(std::move(other.device_)),
        address_(std::exchange(other.address_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      close();
      device_ = std::move(other.device_);
      address_ = std::exchange(other.address_, nullptr);
      size_bytes_ = std::exchange(other.size_bytes_, 0);
    }
    return *this;
  }
  ~Mapping() { close(); }

  std::byte* data() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }

  /// @return 0 or errno; the mapping counts as open until it was 0
  int close() noexcept {
    if (!address_) return 0;
    const int error = device_->unmap(address_, size_bytes_);
    if (error == 0) address_ = nullptr;
    return error;
  }

 private:
  std::shared_ptr<Device> device_;
  std::byte* address_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace librun::ipc
