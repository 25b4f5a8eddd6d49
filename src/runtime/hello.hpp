// SPDX-License-Identifier: Apache-2.0
// What a rank tells of itself at the start of create and resume.
#pragma once

#include <sched.h>

#include "runtime/communicator.hpp"

namespace librun {

struct Communicator::Hello {
  enum class Spin : std::uint32_t { automatic, spin, yield };

  char boot_id[40];
  char host[64];
  cpu_set_t cores;
  ipc::Address address;
  ipc::Token token;
  std::uint64_t arena_bytes;
  char device_id[48];
  librun_device_t device;
  librun_algo_t algo;
  std::uint32_t check;
  std::uint32_t by_handle;
  Spin spin;
  std::uint32_t max_blocks;
  std::uint64_t tuning;  ///< digest of the user's tables; 0: none
  char device_name[64];
};

}  // namespace librun
