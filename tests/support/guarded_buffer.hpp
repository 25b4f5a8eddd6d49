// SPDX-License-Identifier: Apache-2.0
// A user buffer between guard words, at any offset from an aligned address. It may be memory that
// only the device can touch: the host works on a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/device.hpp"
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
      : owned_bytes_(footprint(size_bytes, offset_bytes) + 64),
        owned_(allocate_on_device(owned_bytes_)),
        size_bytes_(size_bytes),
        offset_bytes_(offset_bytes) {
    const std::size_t past = reinterpret_cast<std::size_t>(owned_) % 64;
    memory_ = static_cast<std::byte*>(owned_) + (64 - past) % 64;
    clear();
  }
  /// The same inside memory of someone else, which must hold footprint() bytes.
  GuardedBuffer(void* memory, std::size_t size_bytes, std::size_t offset_bytes)
      : memory_(static_cast<std::byte*>(memory)),
        size_bytes_(size_bytes),
        offset_bytes_(offset_bytes) {
    clear();
  }
  GuardedBuffer(GuardedBuffer&& other) = delete;
  ~GuardedBuffer() {
    if (owned_) free_on_device(owned_, owned_bytes_);
  }

  /// For the library; the host may not touch what it points to.
  std::byte* data() { return memory_ + begin(); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// Writes the guards, and poison where the data go.
  void clear() {
    copy_.assign(footprint(size_bytes_, offset_bytes_), kGuard);
    std::fill_n(copy_.data() + begin(), size_bytes_, kPoison);
    copy_to_device(memory_, copy_.data(), copy_.size());
  }
  void assign(const Bytes& bytes) { copy_to_device(data(), bytes.data(), bytes.size()); }

  /// The data as they are now. Valid until the next call.
  const std::byte* fetch() {
    copy_from_device(copy_.data(), memory_, copy_.size());
    return copy_.data() + begin();
  }
  bool holds(const Bytes& bytes) { return std::equal(bytes.begin(), bytes.end(), fetch()); }
  bool untouched() {
    const std::byte* now = fetch();
    return std::all_of(now, now + size_bytes_, [](std::byte b) { return b == kPoison; });
  }
  bool guards_intact() {
    const std::byte* now = fetch();
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    return std::all_of(now - begin(), now, is_guard) &&
           std::all_of(now + size_bytes_, now + size_bytes_ + kGuardBytes, is_guard);
  }

 private:
  std::size_t begin() const { return kGuardBytes + offset_bytes_; }

  std::size_t owned_bytes_ = 0;
  void* owned_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_;
  std::size_t offset_bytes_;
  Bytes copy_;
};

}  // namespace librun_test
