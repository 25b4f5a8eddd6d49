// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and its kin wait until they are asked for: a process that is checkpointed must be restored
// before this one ends.
#pragma once

#include <chrono>
#include <optional>

namespace car::checkpoint {

/// Make it before the first thread. Blocks SIGINT, SIGTERM and SIGHUP.
class Interrupts {
 public:
  Interrupts();

  /// True from the first signal on.
  bool any();
  /// Waits for the time to pass, or a signal; without a time also for Enter, when stdin is a
  /// terminal.
  void hold(std::optional<std::chrono::seconds> time);

 private:
  bool any_ = false;
};

}  // namespace car::checkpoint
