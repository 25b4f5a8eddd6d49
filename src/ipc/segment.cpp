// SPDX-License-Identifier: Apache-2.0
#include "ipc/segment.hpp"

#include <utility>

namespace librun::ipc {

Segment::Segment(std::shared_ptr<Device> device, std::uint64_t id, std::size_t size_bytes)
    : device_(std::move(device)),
      id_(id),
      size_bytes_(size_bytes),
      by_handle_(device_->info().by_handle) {
  commit();
}

Segment::Segment(std::shared_ptr<Device> device, std::uint64_t id, const Allocation& allocation)
    : device_(std::move(device)),
      id_(id),
      size_bytes_(allocation.size_bytes),
      address_(allocation.address),
      committed_(true),
      borrowed_(true),
      by_handle_(true) {}

Segment::~Segment() {
  if (address_ && !borrowed_) device_->release(address_, size_bytes_, false);
}

void Segment::commit() {
  if (committed_) return;
  address_ = device_->commit(address_, size_bytes_, Memory::exportable);
  committed_ = true;
}

int Segment::release() noexcept {
  if (!committed_) return 0;
  committed_ = false;
  if (!by_handle_) return device_->release(address_, size_bytes_, true);
  return device_->release(std::exchange(address_, nullptr), size_bytes_, false);
}

}  // namespace librun::ipc
