// SPDX-License-Identifier: Apache-2.0
// Watches the links while a communicator is active: a dead or failed peer is noticed at once.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "ipc/link.hpp"

namespace librun {

/// One sleeping thread. start and stop are not thread-safe; the links may only be read by others
/// while it is stopped.
class Monitor {
 public:
  Monitor() = default;
  ~Monitor() { stop(); }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// No-op when it runs. Calls `on_event` once, from its own thread, for the first event; then
  /// watches no more.
  /// @throws Error{system}
  void start(ipc::Links& links, std::function<void(const ipc::PeerEvent&)> on_event);
  /// Returns when the thread has ended. No-op when it does not run.
  void stop() noexcept;
  /// In a child of fork the thread does not exist: lets go of it without touching it.
  void forget_after_fork() noexcept;
  bool running() const { return thread_.joinable(); }
  /// False also when the first event has come: then others may read the links.
  bool watches() const { return running() && !over_; }

 private:
  UniqueFd wake_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace librun
