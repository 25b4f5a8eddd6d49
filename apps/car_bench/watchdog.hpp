// SPDX-License-Identifier: Apache-2.0
// Ends a run that takes too long, and says where it was.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace car::bench {

class Watchdog {
 public:
  Watchdog(std::chrono::seconds limit, int rank);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What the run does now, for the message.
  void doing(std::string what);

 private:
  void watch();

  std::chrono::seconds limit_;
  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_ = "start";
  bool done_ = false;
  std::thread thread_;
};

}  // namespace car::bench
