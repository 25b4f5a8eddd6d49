// SPDX-License-Identifier: Apache-2.0
// Takes the addresses that a suspend has freed, so that resume must map elsewhere.
#pragma once

#include <sys/mman.h>

#include <vector>

#include "librun/librun.hpp"

namespace librun_test {

class Ballast {
 public:
  /// @param mappings what was mapped before the suspend
  explicit Ballast(const std::vector<librun_mapping_t>& mappings) {
    for (const librun_mapping_t& mapping : mappings) {
      void* taken =
          ::mmap(mapping.address, mapping.size_bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
      if (taken != MAP_FAILED) taken_.push_back({taken, mapping.size_bytes});
    }
  }
  ~Ballast() {
    for (const Range& range : taken_) ::munmap(range.address, range.size_bytes);
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
