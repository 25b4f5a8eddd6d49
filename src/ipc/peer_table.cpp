// SPDX-License-Identifier: Apache-2.0
#include "ipc/peer_table.hpp"

#include <algorithm>

namespace librun::ipc {

PeerTable::Entry* PeerTable::find(int rank, std::uint64_t segment) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& candidate) {
    return candidate.rank == rank && candidate.segment == segment;
  });
  return entry == entries_.end() ? nullptr : &*entry;
}

std::byte* PeerTable::acquire(std::shared_ptr<Device> device, int rank, std::uint64_t segment,
                              const Exported& exported, std::size_t size_bytes) {
  if (Entry* entry = find(rank, segment)) {
    ++entry->users;
    return entry->mapping.data();
  }
  entries_.push_back({rank, segment, 1, Mapping(std::move(device), exported, size_bytes)});
  return entries_.back().mapping.data();
}

int PeerTable::release(int rank, std::uint64_t segment) noexcept {
  Entry* entry = find(rank, segment);
  if (!entry || --entry->users > 0) return 0;
  const int error = entry->mapping.close();
  if (error == 0) entries_.erase(entries_.begin() + (entry - entries_.data()));
  return error;
}

int PeerTable::close_all() noexcept {
  int first_error = 0;
  for (Entry& entry : entries_)
    if (const int error = entry.mapping.close(); error != 0 && first_error == 0)
      first_error = error;
  std::erase_if(entries_, [](const Entry& entry) { return entry.mapping.data() == nullptr; });
  return first_error;
}

std::size_t PeerTable::size_bytes() const {
  std::size_t total = 0;
  for (const Entry& entry : entries_) total += entry.mapping.size_bytes();
  return total;
}

}  // namespace librun::ipc
