// SPDX-License-Identifier: Apache-2.0
// Memory of this rank that peers can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device.hpp"

namespace librun::ipc {

/// Owns an address range, and between commit and release the memory; or stands for memory of the
/// user. Neither copied nor moved: graphs and tables hold its address.
class Segment {
 public:
  /// Takes memory at once. @param id differs between the segments of a process; 0: an arena
  /// @throws Error{system}
  Segment(std::shared_ptr<Device> device, std::uint64_t id, std::size_t size_bytes);
  /// For an allocation of the user, which outlives this.
  Segment(std::shared_ptr<Device> device, std::uint64_t id, const Allocation& allocation);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::uint64_t id() const { return id_; }
  std::byte* data() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// To pass on once. @throws Error{system, cuda}
  Exported export_memory() const { return device_->export_memory(address_); }
  /// Exported as a handle of the driver, which a checkpoint makes worthless.
  bool by_handle() const { return by_handle_; }
  bool committed() const { return committed_; }

  /// Fresh zeroed memory, at the same address where the device keeps it. No-op when there is some.
  void commit();
  /// Gives the memory back and keeps the address. @return 0 or errno
  int release() noexcept;

 private:
  std::shared_ptr<Device> device_;
  std::uint64_t id_;
  std::size_t size_bytes_;
  std::byte* address_ = nullptr;
  bool committed_ = false;
  bool borrowed_ = false;
  bool by_handle_ = false;
};

}  // namespace librun::ipc
