// SPDX-License-Identifier: Apache-2.0
// Opaque C handles that can be checked: a handle that was never given out, or was destroyed, is
// found out instead of followed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace librun {

/// A handle is a place in the table and the number of its use: 0x...uuuuuuuuppp. Thread-safe; find
/// is a few loads. An object lives until take: no other thread may use its handle by then.
template <class H, class T, std::size_t Capacity>
class HandleTable {
 public:
  static HandleTable& instance() {
    static HandleTable* const table = new HandleTable;  // outlives every static object
    return *table;
  }

  /// @return a null handle when the table is full
  H insert(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < Capacity; ++at) {
      Place& place = places_[at];
      if (place.object) continue;
      place.object = std::move(object);
      const std::uintptr_t key = ++uses_ << kPlaceBits | at;
      place.key.store(key, std::memory_order_release);
      return reinterpret_cast<H>(key);
    }
    return nullptr;
  }
  /// Null for a handle that is not valid.
  T* find(H handle) const {
    const auto key = reinterpret_cast<std::uintptr_t>(handle);
    const Place& place = places_[key % (std::size_t{1} << kPlaceBits) % Capacity];
    if (key == 0 || place.key.load(std::memory_order_acquire) != key) return nullptr;
    return place.object.get();
  }
  std::shared_ptr<T> take(H handle) {
    const std::lock_guard lock(mutex_);
    if (!find(handle)) return nullptr;
    const auto key = reinterpret_cast<std::uintptr_t>(handle);
    Place& place = places_[key % (std::size_t{1} << kPlaceBits)];
    place.key.store(0, std::memory_order_release);
    return std::move(place.object);
  }

 private:
  static constexpr unsigned kPlaceBits = 16;
  static_assert(Capacity <= std::size_t{1} << kPlaceBits);
  struct Place {
    std::atomic<std::uintptr_t> key{0};
    std::shared_ptr<T> object;
  };
  std::mutex mutex_;
  std::uintptr_t uses_ = 0;
  std::array<Place, Capacity> places_;
};

}  // namespace librun
