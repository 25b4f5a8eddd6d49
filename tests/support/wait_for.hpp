// SPDX-License-Identifier: Apache-2.0
// Polls instead of sleeping for a guessed time.
#pragma once

#include <chrono>
#include <thread>

namespace librun_test {

/// @return false when `condition` did not come true in time
template <class Condition>
bool wait_for(Condition&& condition,
              std::chrono::milliseconds timeout = std::chrono::milliseconds(10000)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace librun_test
