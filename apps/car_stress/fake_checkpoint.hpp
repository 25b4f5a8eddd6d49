// SPDX-License-Identifier: Apache-2.0
// Stands in for a real checkpoint: what matters of one is that memory does not come back at the
// address where it was.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "common/device_memory.hpp"
#include "librun/types.h"

namespace car::stress {

/// Takes the addresses that the mappings of peers had, so that resume has to put them elsewhere.
class FakeCheckpoint {
 public:
  explicit FakeCheckpoint(Device& device) : device_(device) {}
  ~FakeCheckpoint();
  FakeCheckpoint(const FakeCheckpoint&) = delete;
  FakeCheckpoint& operator=(const FakeCheckpoint&) = delete;

  /// Occupies the ranges of `mappings`, which must be closed. Older ranges are released, so that
  /// addresses come back some cycles later.
  /// @return how many were free to take
  int occupy(std::span<const librun_mapping_t> mappings);

  void vacate_all();

  /// How many of the mappings of before are now at another address.
  static int count_moved(std::span<const librun_mapping_t> before,
                         std::span<const librun_mapping_t> after);

 private:
  struct Range {
    void* address;
    std::size_t size_bytes;
  };
  void release(const std::vector<Range>& ranges);

  Device& device_;
  std::deque<std::vector<Range>> generations_;
};

}  // namespace car::stress
