// SPDX-License-Identifier: Apache-2.0
// Ends a run that hangs, after saying where every rank stands.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "car_stress/journal.hpp"
#include "librun/types.h"

namespace car::stress {

/// A thread that looks at the journal. When nothing has moved for `limit` it prints the cycle, the
/// phase, every communicator of this rank and the ranks that are stopped, and aborts the job with
/// exit code 4.
class Watchdog {
 public:
  /// @param pids by rank
  Watchdog(const Journal& journal, std::chrono::milliseconds limit, std::vector<int> pids);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// A communicator whose state is printed, until it is forgotten.
  void watch(const std::string& name, librun_comm_t comm);
  void forget(const std::string& name);

 private:
  void keep_watch();
  void report_and_abort();

  const Journal& journal_;
  const std::chrono::milliseconds limit_;
  const std::vector<int> pids_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::map<std::string, librun_comm_t> comms_;
  std::thread thread_;
};

}  // namespace car::stress
