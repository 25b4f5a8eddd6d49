// SPDX-License-Identifier: Apache-2.0
// A user buffer between guard words, at any offset from an aligned address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "support/model.hpp"

namespace librun_test {

class GuardedBuffer {
 public:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr std::byte kGuard{0xa5};
  static constexpr std::byte kPoison{0xcd};

  /// Bytes of memory that a buffer of `size_bytes` at `offset_bytes` takes with its guards.
  static constexpr std::size_t footprint(std::size_t size_bytes, std::size_t offset_bytes) {
    return 2 * kGuardBytes + offset_bytes + size_bytes;
  }

  /// @param offset_bytes how far the data are from a 64-byte boundary
  GuardedBuffer(std::size_t size_bytes, std::size_t offset_bytes)
      : owned_(new std::byte[footprint(size_bytes, offset_bytes) + 64]),
        size_bytes_(size_bytes),
        offset_bytes_(offset_bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(owned_.get());
    memory_ = owned_.get() + (64 - address % 64) % 64;
    clear();
  }
  /// The same inside memory of someone else, which must hold footprint() bytes.
  GuardedBuffer(void* memory, std::size_t size_bytes, std::size_t offset_bytes)
      : memory_(static_cast<std::byte*>(memory)),
        size_bytes_(size_bytes),
        offset_bytes_(offset_bytes) {
    clear();
  }

  std::byte* data() { return memory_ + kGuardBytes + offset_bytes_; }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Writes the guards, and poison where the data go.
  void clear() {
    std::fill_n(memory_, footprint(size_bytes_, offset_bytes_), kGuard);
    std::fill_n(data(), size_bytes_, kPoison);
  }
  void assign(const Bytes& bytes) { std::copy(bytes.begin(), bytes.end(), data()); }

  bool holds(const Bytes& bytes) { return std::equal(bytes.begin(), bytes.end(), data()); }
  bool untouched() {
    return std::all_of(data(), data() + size_bytes_, [](std::byte b) { return b == kPoison; });
  }
  bool guards_intact() {
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    return std::all_of(memory_, data(), is_guard) &&
           std::all_of(data() + size_bytes_, data() + size_bytes_ + kGuardBytes, is_guard);
  }

 private:
  std::unique_ptr<std::byte[]> owned_;
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_;
  std::size_t offset_bytes_;
};

}  // namespace librun_test
