// SPDX-License-Identifier: Apache-2.0
// How a rank writes what its peers will read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>

#include "kernels/host/stream_copy.hpp"

namespace librun::host {

/// Copies into the own arena, through the caches or around them.
///
/// A store to a line that a peer has read must take it away from the peer's cache first. What that
/// costs depends on where the peer runs, which the topology of a virtual machine does not tell, and
/// which changes while a program runs. Two cores of an EPYC, nanoseconds for a line of 64 bytes
/// (docs/measurements/host.md):
///
///                              one third level for both   one for each   then a read of the peer
///   store through the caches          3 to 10               14 to 38              2 to 6
///   store around the caches             2.4                    2.4                   7
///
/// So: through the caches, until such stores are found slow; then around them, with a trial now and
/// then. Each rank chooses for itself: its readers need not know.
class StagingStores {
 public:
  /// @pre fence() before what is written is published
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) {
    if (!around_) {
      std::memcpy(to, from, size_bytes);
      return;
    }
    stream_copy(to, from, size_bytes);
    to_fence_ = true;
  }
  /// The same for the first part of a call, which now and then is a trial.
  void copy_first(std::byte* to, const std::byte* from, std::size_t size_bytes) {
    if (size_bytes < kMinTrialBytes || ++calls_ % (around_ ? kTrialEvery : kLookEvery) != 0)
      return copy(to, from, size_bytes);
    const auto start = Clock::now();
    std::memcpy(to, from, size_bytes);
    note(Clock::now() - start, size_bytes);
  }
  void fence() {
    if (to_fence_) fence_streams();
    to_fence_ = false;
  }
  bool around() const { return around_; }

  /// What a trial took.
  void note(std::chrono::nanoseconds elapsed, std::size_t size_bytes) {
    constexpr double kLineBytes = 64;
    const double ns_per_line =
        static_cast<double>(elapsed.count()) * kLineBytes / static_cast<double>(size_bytes);
    slow_in_row_ = ns_per_line > kSlowNs ? slow_in_row_ + 1 : 0;
    // One slow trial may be an interrupt; one that is fast is enough to go back.
    around_ = around_ ? slow_in_row_ > 0 : slow_in_row_ >= kSlowTrials;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kSlowNs = 13;
  static constexpr int kSlowTrials = 4;
  static constexpr unsigned kLookEvery = 4;
  static constexpr unsigned kTrialEvery = 64;
  static constexpr std::size_t kMinTrialBytes = 2048;

  bool around_ = false;
  bool to_fence_ = false;
  int slow_in_row_ = 0;
  unsigned calls_ = 0;
};

}  // namespace librun::host
