// SPDX-License-Identifier: Apache-2.0
#include "car_stress/fake_checkpoint.hpp"

#include <algorithm>

namespace car::stress {
namespace {

constexpr std::size_t kKeptGenerations = 4;

}  // namespace

FakeCheckpoint::~FakeCheckpoint() { vacate_all(); }

void FakeCheckpoint::vacate_all() {
  for (const auto& ranges : generations_) release(ranges);
  generations_.clear();
}

int FakeCheckpoint::occupy(std::span<const librun_mapping_t> mappings) {
  std::vector<Range> ranges;
  for (const librun_mapping_t& mapping : mappings) {
    if (device_.occupy(mapping.address, mapping.size_bytes))
      ranges.push_back({mapping.address, mapping.size_bytes});
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
  for (const Range& range : ranges) device_.vacate(range.address, range.size_bytes);
}

}  // namespace car::stress
