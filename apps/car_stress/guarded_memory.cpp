// SPDX-License-Identifier: Apache-2.0
#include "car_stress/guarded_memory.hpp"

#include <cstring>

namespace car::stress {
namespace {

constexpr std::size_t kGuardBytes = 128;
constexpr std::byte kGuard{0x5c};
constexpr std::byte kPoison{0xff};

bool all_equal(const HostCopy& copy, std::size_t size_bytes, std::byte value) {
  if (size_bytes == 0) return true;
  const std::byte* const from = copy.data();
  return from[0] == value && std::memcmp(from, from + 1, size_bytes - 1) == 0;
}

}  // namespace

GuardedRange::GuardedRange(Device& device, std::byte* memory, std::size_t offset_elements,
                           std::size_t element_bytes, std::size_t size_bytes)
    : device_(&device),
      data_(memory + kGuardBytes + offset_elements * element_bytes),
      size_bytes_(size_bytes) {
  device_->fill(data_ - kGuardBytes, kGuard, kGuardBytes);
  device_->fill(data_ + size_bytes_, kGuard, kGuardBytes);
  poison();
}

void GuardedRange::poison() const { device_->fill(data_, kPoison, size_bytes_); }

bool GuardedRange::is_poison() const { return all_equal(contents(), size_bytes_, kPoison); }

bool GuardedRange::guards_intact() const {
  return all_equal({*device_, data_ - kGuardBytes, kGuardBytes}, kGuardBytes, kGuard) &&
         all_equal({*device_, data_ + size_bytes_, kGuardBytes}, kGuardBytes, kGuard);
}

}  // namespace car::stress
