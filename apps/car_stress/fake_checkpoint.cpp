// SPDX-License-Identifier: Apache-2.0
#include "car_stress/fake_checkpoint.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace car::stress {
namespace {

constexpr std::size_t kKeptGenerations = 4;

}  // namespace

FakeCheckpoint::~FakeCheckpoint() {
  for (const auto& ranges : generations_) release(ranges);
}

int FakeCheckpoint::occupy(std::span<const librun_mapping_t> mappings) {
  std::vector<Range> ranges;
  for (const librun_mapping_t& mapping : mappings) {
    // NOREPLACE: what is still mapped there must not be torn away under its owner.
    void* const taken =
        mmap(mapping.address, mapping.size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken == MAP_FAILED) continue;
    if (taken != mapping.address) {  // kernels before 4.17 take the address as a hint
      munmap(taken, mapping.size_bytes);
      continue;
    }
    ranges.push_back({taken, mapping.size_bytes});
  }
  const int count = static_cast<int>(ranges.size());
  generations_.push_back(std::move(ranges));
  if (generations_.size() > kKeptGenerations) {
    release(generations_.front());
    generations_.pop_front();
  }
  return count;
}

int FakeCheckpoint::count_moved(std::span<const librun_mapping_t> before,
                                std::span<const librun_mapping_t> after) {
  return static_cast<int>(std::ranges::count_if(after, [&](const librun_mapping_t& now) {
    return std::ranges::any_of(before, [&](const librun_mapping_t& then) {
      return then.rank == now.rank && then.segment == now.segment && then.address != now.address;
    });
  }));
}

void FakeCheckpoint::release(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) munmap(range.address, range.size_bytes);
}

}  // namespace car::stress
