// SPDX-License-Identifier: Apache-2.0
// What memory, links and launches of a device take by themselves, without librun: the floors of its
// calls. One seam between host and CUDA, like Device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/device_memory.hpp"

namespace car::info {

enum class Move { write, read };

class Probes {
 public:
  virtual ~Probes() = default;

  /// Sends a counter there and back, `rounds` times; both ranks call, with words that hold 0.
  /// @param mine written by the peer @param theirs the same word of the peer @param first who
  /// begins
  /// @return nanoseconds of one way; nothing when the peer did not answer in time
  virtual std::optional<double> bounce_ns(std::uint32_t* mine, std::uint32_t* theirs, bool first,
                                          int rounds) = 0;
  /// Copies between own memory and another's. @param blocks of a GPU; ignored on the host
  /// @return microseconds of one copy
  virtual double move_us(Move move, std::byte* own, std::byte* other, std::size_t size_bytes,
                         int blocks, int repeats) = 0;
  /// Which numbers of blocks are worth a look, in ascending order; 0 alone: there are none.
  virtual std::vector<int> block_counts() const = 0;
  /// A load whose address is what the one before gave, within `size_bytes`, which it writes to.
  virtual double load_ns(std::byte* memory, std::size_t size_bytes) = 0;
  /// One launch of nothing in a graph of many. @param early it may start before the one in front
  /// has ended @return microseconds; nothing where there is no such thing
  virtual std::optional<double> node_us(bool early) = 0;
};

/// @param shares_cores a waiting rank must give way
std::unique_ptr<Probes> make_host_probes(bool shares_cores);
/// @throws std::runtime_error in a build without CUDA
std::unique_ptr<Probes> make_cuda_probes(Device& device);

}  // namespace car::info
