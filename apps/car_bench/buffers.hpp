// SPDX-License-Identifier: Apache-2.0
// The memory of one run.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "car_bench/options.hpp"
#include "common/device_memory.hpp"
#include "librun/librun.hpp"

namespace car::bench {

/// A send and a receive buffer for the largest size; registered with every communicator when asked.
class Buffers {
 public:
  /// Collective when registered.
  Buffers(const Options& options, Device& device, std::vector<librun::Communicator>& comms);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  std::byte* send(std::size_t element_bytes) const { return send_ + shift(element_bytes); }
  std::byte* recv(std::size_t element_bytes) const { return recv_ + shift(element_bytes); }

  /// Gives registrations back. Collective when registered.
  void unregister();

 private:
  std::size_t shift(std::size_t element_bytes) const { return unaligned_ ? element_bytes : 0; }
  std::byte* get(Device& device, std::size_t size_bytes);

  bool unaligned_;
  std::vector<librun::Communicator>& comms_;
  bool registered_;
  std::vector<DeviceBuffer> plain_;
  std::vector<std::pair<std::size_t, librun_buffer_t>> handles_;  // communicator, buffer
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
};

}  // namespace car::bench
