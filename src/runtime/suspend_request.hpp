// SPDX-License-Identifier: Apache-2.0
// Requests for a suspend, which may come from a signal handler.
#pragma once

#include <cstdint>

namespace librun {

/// Async-signal-safe; any thread.
void request_suspend() noexcept;

/// How many requests this process has had. Each communicator keeps which of them it has answered.
std::uint64_t suspend_requests() noexcept;

}  // namespace librun
