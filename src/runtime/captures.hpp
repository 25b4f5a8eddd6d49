// SPDX-License-Identifier: Apache-2.0
// Captures of devices that librun_graph_begin has opened in this process, of all communicators.
#pragma once

#include <chrono>

#include "kernels/unique_handle.hpp"

/// To wait for a whole device spoils a capture on it. So who waits looks that none is open, and
/// keeps new ones out until it has waited: no longer, since a peer may need what is captured.
/// Thread-safe.
namespace librun::captures {

using Deadline = std::chrono::steady_clock::time_point;

/// How long to wait at a time, for who must look about in between.
inline Deadline next_look(Deadline deadline) {
  const auto look = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  return look < deadline ? look : deadline;
}

struct CountTraits {
  using type = bool;
  static type null() noexcept { return false; }
  static void close(type counted) noexcept;
};
/// An open capture counts while this lives.
using Counted = UniqueHandle<CountTraits>;

/// Waits while somebody keeps it out. @return null at the deadline
Counted open(Deadline deadline);
int count();

/// While one of these lives, no capture is opened.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  /// Waits for those that are open. @return false at the deadline
  bool wait_for_open_ones(Deadline deadline);
};

}  // namespace librun::captures
