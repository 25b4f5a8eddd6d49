// SPDX-License-Identifier: Apache-2.0
// Memory whose surroundings are watched: guard words stand before and after what a call may touch.
#pragma once

#include <cstddef>

#include "common/host_copy.hpp"

namespace car::stress {

/// A range inside some memory, with guard words on both sides. Does not own the memory,
/// which may be a device's.
class GuardedRange {
 public:
  /// Room that a range needs besides its own bytes.
  static constexpr std::size_t kSlackBytes = 1024;

  GuardedRange() = default;
  /// Writes the guard words and poisons the range.
  /// @param memory          at least size_bytes + kSlackBytes, aligned to 64
  /// @param offset_elements where in it, below 32
  GuardedRange(Device& device, std::byte* memory, std::size_t offset_elements,
               std::size_t element_bytes, std::size_t size_bytes);

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// What is in it now, for the host to read.
  HostCopy contents() const { return {*device_, data_, size_bytes_}; }
  /// Calls write(bytes), which fills the range.
  template <class Write>
  void write(Write&& write) const {
    write_through(*device_, data_, size_bytes_, write);
  }
  /// Fills the range with bytes that no result consists of (NaN for floats).
  void poison() const;
  bool is_poison() const;
  bool guards_intact() const;

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace car::stress
