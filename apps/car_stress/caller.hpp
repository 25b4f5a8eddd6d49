// SPDX-License-Identifier: Apache-2.0
// Makes the all-reduces of a plan and checks everything that can be checked of them.
#pragma once

#include <cstdint>

#include "car_stress/group.hpp"
#include "car_stress/guarded_memory.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/plan.hpp"

namespace car::stress {

/// The buffers of one call on one rank.
struct CallBuffers {
  GuardedRange input;  ///< equal to output when in place
  GuardedRange output;
  bool in_place = false;

  const std::byte* send() const { return input.data(); }
  std::byte* recv() const { return output.data(); }
};

/// Bytes that the buffers of a call need, each.
std::size_t room_of(const CallPlan& call);

/// Lays the buffers into two pieces of memory, at offsets that differ from rank to rank.
CallBuffers place_buffers(Device& device, const CallPlan& call, std::byte* input, std::byte* output,
                          Random& random);

/// Poisons the output and writes this rank's input.
void fill_buffers(const CallBuffers& buffers, const CallPlan& call, const Group& group,
                  std::uint64_t seed);

/// Reports wrong elements and touched guard words.
void check_result(const CallBuffers& buffers, const CallPlan& call, const Group& group,
                  std::uint64_t seed, Journal& journal);

class Caller {
 public:
  Caller(Device& device, std::size_t max_bytes, Journal& journal);

  /// Collective over the group. @throws librun::Error
  /// @return hash of the result, equal on all ranks of the group
  std::uint64_t run(Group& group, const CallPlan& call);

  std::uint64_t calls() const { return calls_; }

 private:
  CallBuffers choose_buffers(Group& group, const CallPlan& call, Random& random);

  DeviceBuffer input_, output_;
  Journal& journal_;
  std::uint64_t calls_ = 0;
};

}  // namespace car::stress
