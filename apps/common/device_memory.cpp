// SPDX-License-Identifier: Apache-2.0
#include "common/device_memory.hpp"

namespace car {

DeviceBuffer::DeviceBuffer(Device& device, std::size_t size_bytes, Place place)
    : device_(&device),
      data_(static_cast<std::byte*>(device.allocate(size_bytes, place))),
      place_(place) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(place_, other.place_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_) device_->release(data_, place_);
}

}  // namespace car
