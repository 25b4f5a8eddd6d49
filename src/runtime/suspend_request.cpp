// SPDX-License-Identifier: Apache-2.0
#include "runtime/suspend_request.hpp"

#include <atomic>

namespace librun {
namespace {

std::atomic<std::uint64_t> requests{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "or a signal handler could deadlock");

}  // namespace

void request_suspend() noexcept { requests.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t suspend_requests() noexcept { return requests.load(std::memory_order_relaxed); }

}  // namespace librun
