// SPDX-License-Identifier: Apache-2.0
#include "common/watchdog.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>

#include "common/exit_codes.hpp"

namespace car {

Watchdog::Watchdog(std::string tool, std::chrono::seconds limit, int rank)
    : tool_(std::move(tool)), limit_(limit), rank_(rank), thread_([this] { watch(); }) {}

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
  since_ = std::chrono::steady_clock::now();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!done_ && std::chrono::steady_clock::now() < since_ + limit_)
    wake_.wait_until(lock, since_ + limit_);
  if (done_) return;
  fmt::print(stderr, "{}: rank {}: not done after {} s: {}\n", tool_, rank_, limit_.count(), what_);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, kExitTimeout);
}

}  // namespace car
