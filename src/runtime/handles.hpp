// SPDX-License-Identifier: Apache-2.0
// Opaque C handles that can be checked: a handle that was never given out, or was destroyed, is
// found out instead of followed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace librun {

/// Thread-safe. `H` is an opaque pointer type of the C API.
template <class H, class T>
class HandleTable {
 public:
  static HandleTable& instance() {
    static HandleTable* const table = new HandleTable;  // outlives every static object
    return *table;
  }

  H insert(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const std::uintptr_t key = next_++;
    objects_.emplace(key, std::move(object));
    return reinterpret_cast<H>(key);
  }
  /// Null for a handle that is not valid.
  std::shared_ptr<T> find(H handle) const {
    const std::lock_guard lock(mutex_);
    const auto entry = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return entry == objects_.end() ? nullptr : entry->second;
  }
  std::shared_ptr<T> take(H handle) {
    const std::lock_guard lock(mutex_);
    const auto entry = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (entry == objects_.end()) return nullptr;
    auto object = std::move(entry->second);
    objects_.erase(entry);
    return object;
  }

 private:
  mutable std::mutex mutex_;
  std::uintptr_t next_ = 0x1001;
  std::unordered_map<std::uintptr_t, std::shared_ptr<T>> objects_;
};

}  // namespace librun
