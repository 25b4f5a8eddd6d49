// SPDX-License-Identifier: Apache-2.0
// Counts and times of a run, as one rank sees them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/holdings.hpp"

namespace car::stress {

/// Durations with their percentiles, of runs of any length in bounded memory. Not thread-safe.
class Durations {
 public:
  void add(std::chrono::steady_clock::duration elapsed);
  std::uint64_t count() const { return added_; }
  /// In microseconds; 0 when nothing was added. @param percent 0 to 100
  double percentile_us(double percent) const;
  double longest_us() const { return static_cast<double>(longest_us_); }

 private:
  std::vector<float> us_;
  std::uint64_t added_ = 0;
  std::uint64_t stride_ = 1;  ///< every so many of those added are in us_
  float longest_us_ = 0;
};

/// A night has too many cycles for a line each: the JUnit file has one for so many.
inline constexpr std::uint64_t kCyclesPerPart = 100;

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
  std::uint64_t lost_slots = 0;      ///< that a checkpoint made staged
  std::vector<BadCycle> bad_cycles;  ///< the first few, with text
  std::uint64_t failures = 0;        ///< cycles in which some rank found something wrong
  std::vector<double> part_ends_s;   ///< of each kCyclesPerPart cycles, from the start
  HoldingsLog held;                  ///< at the end of each epoch, when only comm 0 is left

  double elapsed_s() const;
};

/// "suspend p50 3.1 ms p99 5.0 ms  resume p50 4.0 ms p99 6.1 ms"
std::string describe_times(const Tally& tally);

}  // namespace car::stress
