// SPDX-License-Identifier: Apache-2.0
// How a rank waits for its peers on the host.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "kernels/control_block.hpp"

namespace librun::host {

inline std::uint64_t load_acquire(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store_release(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}
inline std::uint32_t load_relaxed(const std::uint32_t& word) {
  return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_relaxed);
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Three stages, each cheaper for the others: spin while every rank has a core, give way, and sleep
/// once the wait is long. A spinning barrier of 8 ranks on 2 cores takes 12.8 ms; with yields, 8
/// us.
class Waiter {
 public:
  explicit Waiter(const ControlBlock& control)
      : words_(*control.words),
        spin_(std::chrono::microseconds(control.spin_us)),
        limit_(std::chrono::nanoseconds(control.wait_ns)) {}

  /// @return ok, aborted or timeout
  template <class Ready>
  Outcome until(Ready ready) const {
    if (ready()) return Outcome::ok;
    return slow(ready);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kYieldFor = std::chrono::milliseconds(1);
  /// A nap costs 20 us of a core on a virtual machine; a sixteenth of the wait is soon enough.
  static constexpr int kNapsPerWait = 16;
  static constexpr std::chrono::nanoseconds kShortestNap = std::chrono::microseconds(50);
  static constexpr std::chrono::nanoseconds kLongestNap = std::chrono::milliseconds(2);
  static constexpr int kPausesPerLook = 32;
  static constexpr int kYieldsPerLook = 16;

  /// Acquires: what the rank that gave the news had seen is seen here as well.
  bool aborted() const {
    return std::atomic_ref(const_cast<std::uint32_t&>(words_.abort))
               .load(std::memory_order_acquire) != 0;
  }

  template <class Ready>
  Outcome slow(Ready ready) const {
    // Most waits of ranks with a core each end here, before the first look at the clock.
    for (int i = 0; spin_.count() != 0 && i < kPausesPerLook; ++i) {
      pause_cpu();
      if (ready()) return Outcome::ok;
    }
    for (int i = 0; spin_.count() == 0 && i < kYieldsPerLook; ++i) {
      sched_yield();
      if (ready()) return Outcome::ok;
    }
    const auto start = Clock::now();
    for (auto waited = Clock::duration{0}; waited < spin_; waited = Clock::now() - start) {
      for (int i = 0; i < kPausesPerLook; ++i) {
        pause_cpu();
        if (ready()) return Outcome::ok;
      }
    }
    for (;;) {
      const auto waited = Clock::now() - start;
      if (aborted()) return ready() ? Outcome::ok : Outcome::aborted;
      if (waited >= limit_) return Outcome::timeout;
      if (waited < kYieldFor) {
        for (int i = 0; i < kYieldsPerLook; ++i) {
          sched_yield();
          if (ready()) return Outcome::ok;
        }
      } else {
        std::this_thread::sleep_for(
            std::clamp<std::chrono::nanoseconds>(waited / kNapsPerWait, kShortestNap, kLongestNap));
        if (ready()) return Outcome::ok;
      }
    }
  }

  const HostWords& words_;
  std::chrono::nanoseconds spin_;
  std::chrono::nanoseconds limit_;
};

}  // namespace librun::host
