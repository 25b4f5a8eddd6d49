// SPDX-License-Identifier: Apache-2.0
// Counts and times of a run, as one rank sees them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace car::stress {

/// Durations with their percentiles. Not thread-safe.
class Durations {
 public:
  void add(std::chrono::steady_clock::duration elapsed);
  std::size_t count() const { return us_.size(); }
  /// In microseconds; 0 when nothing was added. @param percent 0 to 100
  double percentile_us(double percent) const;

 private:
  mutable std::vector<float> us_;  ///< reordered by percentile_us
};

struct BadCycle {
  std::uint64_t cycle;
  std::string text;
};

struct Tally {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::uint64_t first_cycle = 0;
  std::uint64_t cycles = 0;        ///< done, the bad ones included
  std::uint64_t moved_cycles = 0;  ///< in which a mapping came back at another address
  std::uint64_t calls = 0;
  std::uint64_t launches = 0;
  std::uint64_t refusals = 0;
  Durations suspend, resume;
  std::uint64_t checkpoints = 0;  ///< real ones, by the driver
  Durations checkpoint, restore;
  std::uint64_t lost_slots = 0;             ///< that a checkpoint made staged
  std::optional<std::uint64_t> held_bytes;  ///< most memory of GPUs in use while checkpointed
  std::vector<BadCycle> bad_cycles;         ///< the first few, with text
  std::uint64_t failures = 0;               ///< cycles in which some rank found something wrong

  double elapsed_s() const;
};

/// "suspend p50 3.1 ms p99 5.0 ms  resume p50 4.0 ms p99 6.1 ms"
std::string describe_times(const Tally& tally);

}  // namespace car::stress
