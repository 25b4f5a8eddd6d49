// SPDX-License-Identifier: Apache-2.0
#include "car_bench/buffers.hpp"

#include <fstream>
#include <string>

namespace car::bench {
namespace {

constexpr std::size_t kSlackBytes = 64;  // an element of -u, and whole cache lines

}  // namespace

Buffers::Buffers(const Options& options, std::vector<librun::Communicator>& comms)
    : unaligned_(options.unaligned), comms_(comms), registered_(options.registered) {
  const std::size_t size_bytes = options.max_bytes + kSlackBytes;
  send_ = get(size_bytes);
  recv_ = get(size_bytes);
  if (!registered_) return;
  for (std::size_t i = 0; i < comms_.size(); ++i)
    for (std::byte* buffer : {send_, recv_})
      handles_.emplace_back(i, comms_[i].register_buffer(buffer, size_bytes));
}

std::byte* Buffers::get(std::size_t size_bytes) {
  if (registered_) return static_cast<std::byte*>(comms_.front().allocate(size_bytes));
  constexpr std::size_t kAlign = 4096;
  plain_.push_back(std::make_unique<std::byte[]>(size_bytes + kAlign));
  const auto address = reinterpret_cast<std::uintptr_t>(plain_.back().get());
  return plain_.back().get() + (kAlign - address % kAlign) % kAlign;
}

void Buffers::unregister() {
  for (const auto& [comm, buffer] : handles_) comms_[comm].unregister_buffer(buffer);
  handles_.clear();
}

// Memory of librun_malloc ends with its communicator.
Buffers::~Buffers() = default;

std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib >> unit)
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

}  // namespace car::bench
