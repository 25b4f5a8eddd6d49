// SPDX-License-Identifier: Apache-2.0
// Ends a run of which one step takes too long, and says which.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace car {

class Watchdog {
 public:
  /// @param tool for the message
  Watchdog(std::string tool, std::chrono::seconds limit, int rank);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Starts the next step, named for the message.
  void doing(std::string what);

 private:
  void watch();

  std::string tool_;
  std::chrono::seconds limit_;
  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_ = "start up";
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool done_ = false;
  std::thread thread_;
};

}  // namespace car
