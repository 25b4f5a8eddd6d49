// SPDX-License-Identifier: Apache-2.0
// What is measured at one size, and one way to do it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/device_memory.hpp"
#include "librun/types.h"

namespace car::bench {

struct Work {
  Device& device;
  void* stream;
  std::byte* send;
  std::byte* recv;
  std::size_t count;
  std::size_t size_bytes;
  librun_dtype_t dtype;
  librun_op_t op;
  librun_algo_t algo;
};

/// One way to call, and the times of its batches.
struct Way {
  std::function<void()> call;
  std::span<std::byte> input{};          ///< written anew before each call; empty: left as it is
  std::function<void()> finish = [] {};  ///< waits for all calls so far
  int calls_each = 1;
  int repeats = 1;  ///< of call in a batch
  std::vector<double> batches_us{};
  std::vector<double> writes_us{};  ///< of writing the input anew
};

/// Writes a word of each cache line, as a program does that has new data for each call: else the
/// peers' caches would still hold what they read the last time.
inline void write_anew(std::span<std::byte> memory) {
  constexpr std::size_t kLineBytes = 64;
  for (std::size_t at = 0; at < memory.size(); at += kLineBytes)
    *const_cast<volatile std::byte*>(&memory[at]) = std::byte{0};
}

struct Ends {
  const std::byte* from;
  std::byte* to;
};

/// The buffers of the i-th call of a row. Where calls return early, each takes what the one before
/// gave: nobody can overlap them.
inline Ends ends_of(const Work& work, bool in_place, int i) {
  if (in_place) return {work.recv, work.recv};
  const bool back = work.device.is_asynchronous() && i % 2 == 1;
  return back ? Ends{work.recv, work.send} : Ends{work.send, work.recv};
}

}  // namespace car::bench
