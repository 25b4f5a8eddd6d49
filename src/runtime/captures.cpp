// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures.hpp"

#include <condition_variable>
#include <mutex>

namespace librun::captures {
namespace {

std::mutex mutex;
std::condition_variable changed;
int n_open = 0;
int n_pauses = 0;

}  // namespace

void CountTraits::close(bool /*counted*/) noexcept {
  {
    const std::lock_guard lock(mutex);
    --n_open;
  }
  changed.notify_all();
}

Counted open(Deadline deadline) {
  std::unique_lock lock(mutex);
  if (!changed.wait_until(lock, deadline, [] { return n_pauses == 0; })) return Counted();
  ++n_open;
  return Counted(true);
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
  changed.notify_all();
}

bool Pause::wait_for_open_ones(Deadline deadline) {
  std::unique_lock lock(mutex);
  return changed.wait_until(lock, deadline, [] { return n_open == 0; });
}

}  // namespace librun::captures
