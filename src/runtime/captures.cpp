// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures.hpp"

#include <condition_variable>
#include <mutex>

namespace librun::captures {
namespace {

std::mutex mutex;
std::condition_variable resumed;
int n_open = 0;
int n_pauses = 0;

}  // namespace

bool open(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex);
  if (!resumed.wait_until(lock, deadline, [] { return n_pauses == 0; })) return false;
  ++n_open;
  return true;
}

void close() noexcept {
  const std::lock_guard lock(mutex);
  --n_open;
}

int count() {
  const std::lock_guard lock(mutex);
  return n_open;
}

Pause::Pause() {
  const std::lock_guard lock(mutex);
  ++n_pauses;
}

Pause::~Pause() {
  {
    const std::lock_guard lock(mutex);
    --n_pauses;
  }
  resumed.notify_all();
}

}  // namespace librun::captures
