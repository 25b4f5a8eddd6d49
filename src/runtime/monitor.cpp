// SPDX-License-Identifier: Apache-2.0
#include "runtime/monitor.hpp"

#include <signal.h>
#include <sys/eventfd.h>

#include <cstdint>
#include <new>
#include <system_error>

namespace librun {

void Monitor::start(ipc::Links& links, std::function<void(const ipc::PeerEvent&)> on_event) {
  if (links.empty() || running()) return;
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_)
    throw Error(LIBRUN_SYSTEM, -1, "cannot make an event descriptor.",
                "check the limit of open files (ulimit -n).");
  // The host program's signals are its own threads' business.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    over_ = false;
    thread_ = std::thread([this, &links, on_event = std::move(on_event), wake = wake_.get()] {
      for (;;) {
        const auto event = links.poll(-1, wake);
        if (event) {
          on_event(*event);
          over_ = true;
          return;
        }
        std::uint64_t count = 0;
        if (::read(wake, &count, sizeof(count)) > 0) return;
      }
    });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(LIBRUN_SYSTEM, -1,
                "cannot start the monitor thread (" + std::string(error.what()) + ").",
                "check the limit of processes (ulimit -u).");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Monitor::stop() noexcept {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
  wake_.reset();
}

void Monitor::forget_after_fork() noexcept {
  if (thread_.joinable()) new (&thread_) std::thread();
}

}  // namespace librun
