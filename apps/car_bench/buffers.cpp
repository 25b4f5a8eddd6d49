// SPDX-License-Identifier: Apache-2.0
#include "car_bench/buffers.hpp"

namespace car::bench {
namespace {

constexpr std::size_t kSlackBytes = 64;  // an element of -u, and whole cache lines

}  // namespace

Buffers::Buffers(const Options& options, Device& device, std::vector<librun::Communicator>& comms)
    : unaligned_(options.unaligned), comms_(comms), registered_(options.registered) {
  const std::size_t size_bytes = options.max_bytes + kSlackBytes;
  send_ = get(device, size_bytes);
  recv_ = get(device, size_bytes);
  if (!registered_) return;
  for (std::size_t i = 0; i < comms_.size(); ++i)
    for (std::byte* buffer : {send_, recv_})
      handles_.emplace_back(i, comms_[i].register_buffer(buffer, size_bytes));
}

std::byte* Buffers::get(Device& device, std::size_t size_bytes) {
  if (registered_) return static_cast<std::byte*>(comms_.front().allocate(size_bytes));
  plain_.emplace_back(device, size_bytes);
  return plain_.back().data();
}

void Buffers::unregister() {
  for (const auto& [comm, buffer] : handles_) comms_[comm].unregister_buffer(buffer);
  handles_.clear();
}

// Memory of librun_malloc ends with its communicator.
Buffers::~Buffers() = default;

}  // namespace car::bench
