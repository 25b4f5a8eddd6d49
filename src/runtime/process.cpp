// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.hpp"

#include <pthread.h>

#include <atomic>

namespace librun {
namespace {

std::atomic<std::uint64_t> instance{1};

}  // namespace

std::uint64_t process_instance() {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { instance.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return instance.load(std::memory_order_relaxed);
}

}  // namespace librun
