// SPDX-License-Identifier: Apache-2.0
// Takes the addresses that a suspend has freed, so that resume must map elsewhere.
#pragma once

#include <vector>

#include "librun/librun.hpp"
#include "support/device.hpp"

namespace librun_test {

class Ballast {
 public:
  /// @param mappings what was mapped before the suspend
  explicit Ballast(const std::vector<librun_mapping_t>& mappings) {
    for (const librun_mapping_t& mapping : mappings)
      if (occupy(mapping.address, mapping.size_bytes))
        taken_.push_back({mapping.address, mapping.size_bytes});
  }
  ~Ballast() {
    for (const Range& range : taken_) vacate(range.address, range.size_bytes);
  }
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  std::size_t taken() const { return taken_.size(); }

 private:
  struct Range {
    void* address;
    std::size_t size_bytes;
  };
  std::vector<Range> taken_;
};

}  // namespace librun_test
