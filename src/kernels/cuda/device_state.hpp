// SPDX-License-Identifier: Apache-2.0
// What the kernels keep in device memory, and their one argument.
#pragma once

#include <cstdint>

#include "kernels/control_block.hpp"
#include "kernels/device.hpp"

namespace librun::cuda {

inline constexpr int kMaxWorld = 16;
inline constexpr std::uint32_t kMaxBlocks = 64;

/// At one address for life, so that graphs may hold it.
struct DeviceState {
  ControlBlock control;  ///< copied from the host by publish
  /// The last step that each block has taken, on its own: no rendezvous of the grid. Zero at the
  /// start of a generation, when all arenas are zero too. Step s writes the epoch s.
  std::uint32_t step[kMaxBlocks];
  std::uint32_t failed;   ///< the first failing block has reported
  std::uint32_t refused;  ///< what the announcement of the call under way said: 0: go on
  Announcement announced[kMaxWorld];
  std::uint32_t caught;  ///< launches that found the gate closed; of all generations
};

/// Nothing in it goes stale.
struct KernelArgs {
  DeviceState* state;
  const std::byte* send;
  std::byte* recv;
  std::uint64_t count;
  librun_op_t op;
  Body body;
  bool announced;  ///< an announce kernel ran before this one
};

}  // namespace librun::cuda
