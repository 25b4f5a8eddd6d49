// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocations.hpp"

#include <fmt/format.h>

#include "runtime/agreement.hpp"

namespace librun {

Allocations& Allocations::instance() {
  static Allocations* const allocations = new Allocations;  // outlives every static object
  return *allocations;
}

std::shared_ptr<ipc::Segment> Allocations::allocate(std::shared_ptr<Device> device,
                                                    std::size_t size_bytes, const void* owner) {
  const std::size_t rounded = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
  }
  auto segment = std::make_shared<ipc::Segment>(std::move(device), id, rounded);
  const std::lock_guard lock(mutex_);
  by_address_[reinterpret_cast<std::uintptr_t>(segment->data())] = {segment, owner};
  return segment;
}

void Allocations::free(void* address) {
  const std::lock_guard lock(mutex_);
  const auto entry = by_address_.find(reinterpret_cast<std::uintptr_t>(address));
  if (entry == by_address_.end())
    throw Error(LIBRUN_INVALID_ARGUMENT, -1,
                fmt::format("free: {} is not the start of memory from librun_malloc.", address),
                "pass the pointer that librun_malloc gave, once.");
  if (entry->second.segment.use_count() > 1)
    throw Rejection(LIBRUN_REJECTED, -1,
                    fmt::format("free: the memory at {} is registered.", address),
                    "unregister it first.");
  by_address_.erase(entry);
}

void Allocations::drop_owner(const void* owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(by_address_, [&](const auto& entry) { return entry.second.owner == owner; });
}

Located Allocations::locate(const void* address, std::size_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto entry = by_address_.upper_bound(at);
  if (entry == by_address_.begin()) return {};
  --entry;
  const std::size_t offset = at - entry->first;
  const std::size_t segment_bytes = entry->second.segment->size_bytes();
  if (offset > segment_bytes || size_bytes > segment_bytes - offset) return {};
  return {entry->second.segment, offset};
}

Located Allocations::locate_foreign(const std::shared_ptr<Device>& device, const void* address,
                                    std::size_t size_bytes) {
  const auto found = device->find_allocation(address);
  if (!found) return {};
  const auto base = reinterpret_cast<std::uintptr_t>(found->address);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - base;
  if (size_bytes > found->size_bytes - offset) return {};
  const std::lock_guard lock(mutex_);
  auto segment = foreign_[base].lock();
  if (!segment || segment->size_bytes() != found->size_bytes) {
    segment = std::make_shared<ipc::Segment>(device, next_id_++, *found);
    foreign_[base] = segment;
  }
  std::erase_if(foreign_, [](const auto& entry) { return entry.second.expired(); });
  return {segment, offset};
}

Allocations::Usage Allocations::usage(const void* owner) const {
  const std::lock_guard lock(mutex_);
  Usage usage{};
  for (const auto& [address, entry] : by_address_) {
    if (entry.owner != owner) continue;
    ++usage.segments;
    usage.size_bytes += entry.segment->size_bytes();
  }
  return usage;
}

}  // namespace librun
