// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry.hpp"

#include <algorithm>

namespace librun {

std::optional<int> Registry::free_slot() const {
  const auto slot =
      std::find_if(slots_.begin(), slots_.end(), [](const auto& entry) { return !entry; });
  if (slot == slots_.end()) return std::nullopt;
  return static_cast<int>(slot - slots_.begin());
}

void Registry::insert(int slot, Buffer buffer) {
  ++used_;
  staged_ += buffer.staged;
  slots_[static_cast<std::size_t>(slot)] = std::move(buffer);
}

void Registry::make_staged(int slot) {
  auto& entry = slots_[static_cast<std::size_t>(slot)];
  if (!entry || entry->staged) return;
  entry->staged = entry->lost = true;
  ++staged_;
  ++lost_;
}

void Registry::erase(int slot) {
  auto& entry = slots_[static_cast<std::size_t>(slot)];
  if (!entry) return;
  --used_;
  staged_ -= entry->staged;
  lost_ -= entry->lost;
  entry.reset();
}

std::optional<int> Registry::find_id(std::uint64_t id) const {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot] && slots_[slot]->id == id) return static_cast<int>(slot);
  return std::nullopt;
}

int Registry::find_range(const std::byte* address, std::size_t size_bytes) const {
  int staged_slot = -1;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]) continue;
    const Buffer& buffer = *slots_[slot];
    if (address < buffer.address || address > buffer.address + buffer.size_bytes) continue;
    const auto offset = static_cast<std::size_t>(address - buffer.address);
    if (size_bytes > buffer.size_bytes - offset) continue;
    if (!buffer.staged) return static_cast<int>(slot);
    if (staged_slot < 0) staged_slot = static_cast<int>(slot);
  }
  return staged_slot;
}

const Buffer* Registry::at(int slot) const {
  const auto& entry = slots_[static_cast<std::size_t>(slot)];
  return entry ? &*entry : nullptr;
}

std::vector<BufferPlace> Registry::segments_of(int rank) const {
  std::vector<BufferPlace> places;
  for (const auto& slot : slots_) {
    if (!slot || slot->staged) continue;
    const BufferPlace& place = slot->places[static_cast<std::size_t>(rank)];
    const auto same = [&](const BufferPlace& seen) { return seen.segment == place.segment; };
    if (std::none_of(places.begin(), places.end(), same)) places.push_back(place);
  }
  return places;
}

SlotSet Registry::slots_of(int rank, std::uint64_t segment) const {
  SlotSet found;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot] && !slots_[slot]->staged &&
        slots_[slot]->places[static_cast<std::size_t>(rank)].segment == segment)
      found.set(slot);
  return found;
}

std::vector<std::shared_ptr<ipc::Segment>> Registry::own_segments() const {
  std::vector<std::shared_ptr<ipc::Segment>> segments;
  for (const auto& slot : slots_)
    if (slot && !slot->staged &&
        std::find(segments.begin(), segments.end(), slot->segment) == segments.end())
      segments.push_back(slot->segment);
  return segments;
}

std::uint64_t Registry::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]) continue;
    mix(slot);
    mix(slots_[slot]->id);
    mix(slots_[slot]->size_bytes);
  }
  return hash;
}

}  // namespace librun
