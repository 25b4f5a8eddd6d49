// SPDX-License-Identifier: Apache-2.0
// Device memory as the host reads and writes it: in place where it can, through a copy elsewhere.
#pragma once

#include <cstddef>
#include <memory>

#include "common/device_memory.hpp"

namespace car {

/// What some memory holds now. Pending work on it must be done.
class HostCopy {
 public:
  HostCopy(Device& device, const std::byte* memory, std::size_t size_bytes) : data_(memory) {
    if (!device.is_asynchronous()) return;
    copy_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
    device.copy(copy_.get(), memory, size_bytes);
    data_ = copy_.get();
  }
  const std::byte* data() const noexcept { return data_; }

 private:
  const std::byte* data_;
  std::unique_ptr<std::byte[]> copy_;
};

/// Calls write(bytes) with memory of the host, and what it leaves there is then in `memory`.
template <class Write>
void write_through(Device& device, std::byte* memory, std::size_t size_bytes, Write&& write) {
  if (!device.is_asynchronous()) return write(memory);
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
  write(bytes.get());
  device.copy(memory, bytes.get(), size_bytes);
}

}  // namespace car
