// SPDX-License-Identifier: Apache-2.0
// Captures of devices that librun_graph_begin has opened in this process, of all communicators.
#pragma once

#include <chrono>

namespace librun {

/// To wait for a whole device spoils a capture on it. So who waits looks that none is open, and
/// keeps new ones out until it has waited. Thread-safe.
namespace captures {

/// Counts one more; waits while somebody keeps it out. @return false at the deadline: not counted
bool open(std::chrono::steady_clock::time_point deadline);
void close() noexcept;
int count();

/// While one of these lives, no capture is opened.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

}  // namespace captures
}  // namespace librun
