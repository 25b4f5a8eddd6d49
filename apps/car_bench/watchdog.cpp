// SPDX-License-Identifier: Apache-2.0
#include "car_bench/watchdog.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>

#include "common/exit_codes.hpp"

namespace car::bench {

Watchdog::Watchdog(std::chrono::seconds limit, int rank)
    : limit_(limit), rank_(rank), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::doing(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  if (wake_.wait_for(lock, limit_, [this] { return done_; })) return;
  fmt::print(stderr, "car_bench: rank {}: not done after {} s (-T): {}\n", rank_, limit_.count(),
             what_);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, kExitTimeout);
}

}  // namespace car::bench
