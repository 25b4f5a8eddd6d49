// SPDX-License-Identifier: Apache-2.0
#include "car_checkpoint/interrupts.hpp"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace car::checkpoint {
namespace {

constexpr long kLookNs = 50'000'000;

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

bool enter_was_pressed() {
  if (!::isatty(STDIN_FILENO)) return false;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool Interrupts::any() {
  const sigset_t set = signals();
  const timespec now{0, 0};
  while (sigtimedwait(&set, nullptr, &now) > 0) any_ = true;
  return any_;
}

void Interrupts::hold(std::optional<std::chrono::seconds> time) {
  const auto start = std::chrono::steady_clock::now();
  const sigset_t set = signals();
  const timespec look{0, kLookNs};
  while (!any()) {
    if (time && std::chrono::steady_clock::now() - start >= *time) return;
    if (!time && enter_was_pressed()) return;
    if (sigtimedwait(&set, nullptr, &look) > 0) any_ = true;
  }
}

}  // namespace car::checkpoint
