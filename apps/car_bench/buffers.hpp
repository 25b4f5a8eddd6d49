// SPDX-License-Identifier: Apache-2.0
// The memory of one run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "car_bench/options.hpp"
#include "librun/librun.hpp"

namespace car::bench {

/// A send and a receive buffer for the largest size; registered with every communicator when asked.
class Buffers {
 public:
  /// Collective when registered.
  Buffers(const Options& options, std::vector<librun::Communicator>& comms);
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  std::byte* send(std::size_t element_bytes) const { return send_ + shift(element_bytes); }
  std::byte* recv(std::size_t element_bytes) const { return recv_ + shift(element_bytes); }

  /// Gives registrations back. Collective when registered.
  void unregister();

 private:
  std::size_t shift(std::size_t element_bytes) const { return unaligned_ ? element_bytes : 0; }
  std::byte* get(std::size_t size_bytes);

  bool unaligned_;
  std::vector<librun::Communicator>& comms_;
  bool registered_;
  std::vector<std::unique_ptr<std::byte[]>> plain_;
  std::vector<std::pair<std::size_t, librun_buffer_t>> handles_;  // communicator, buffer
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
};

/// Bytes of memory that can still be had on this machine; 0 when unknown.
std::uint64_t available_memory_bytes();

}  // namespace car::bench
