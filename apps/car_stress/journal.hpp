// SPDX-License-Identifier: Apache-2.0
// What this rank is doing now, and what it found wrong so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace car::stress {

/// Thread-safe: the watchdog reads what the main thread writes.
class Journal {
 public:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::uint64_t cycle = 0;
    std::string phase;
    Clock::time_point since;
  };

  explicit Journal(int rank) : rank_(rank) { doing("start"); }

  /// The rank in all of the run's ranks.
  int rank() const { return rank_; }
  void begin_cycle(std::uint64_t cycle);
  /// Every call counts as progress.
  void doing(std::string phase);
  Entry now() const;

  /// Prints the finding with its rank, cycle and phase; the run goes on, so that the ranks stay
  /// together until the end of the cycle.
  void wrong(const std::string& what);
  std::uint64_t findings() const { return findings_; }
  /// Text of the first finding of this cycle, "" when there is none.
  const std::string& first_of_cycle() const { return first_of_cycle_; }

  /// "rank 2: cycle 12: suspend of comm 1"
  std::string where() const;

 private:
  const int rank_;
  mutable std::mutex mutex_;
  Entry now_;
  std::uint64_t findings_ = 0;
  std::string first_of_cycle_;
};

}  // namespace car::stress
