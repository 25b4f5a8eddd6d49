// SPDX-License-Identifier: Apache-2.0
#include "ipc/segment.hpp"

namespace librun::ipc {

Segment::Segment(std::shared_ptr<Device> device, std::uint64_t id, std::size_t size_bytes)
    : device_(std::move(device)), id_(id), size_bytes_(size_bytes) {
  commit();
}

Segment::~Segment() { device_->release(address_, size_bytes_, false); }

void Segment::commit() {
  if (committed_) return;
  address_ = device_->commit(address_, size_bytes_, Memory::exportable);
  committed_ = true;
}

int Segment::release() noexcept {
  if (!committed_) return 0;
  committed_ = false;
  return device_->release(address_, size_bytes_, true);
}

}  // namespace librun::ipc
