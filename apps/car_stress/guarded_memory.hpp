// SPDX-License-Identifier: Apache-2.0
// Memory whose surroundings are watched: guard words stand before and after what a call may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace car::stress {

/// A range inside some memory, with guard words on both sides. Does not own the memory.
class GuardedRange {
 public:
  /// Room that a range needs besides its own bytes.
  static constexpr std::size_t kSlackBytes = 1024;

  GuardedRange() = default;
  /// Writes the guard words and poisons the range.
  /// @param memory          at least size_bytes + kSlackBytes, aligned to 64
  /// @param offset_elements where in it, below 32
  GuardedRange(std::byte* memory, std::size_t offset_elements, std::size_t element_bytes,
               std::size_t size_bytes);

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Fills the range with bytes that no result consists of (NaN for floats).
  void poison() const;
  bool is_poison() const;
  bool guards_intact() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Page-aligned private memory of this process.
class PlainMemory {
 public:
  explicit PlainMemory(std::size_t size_bytes);
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace car::stress
