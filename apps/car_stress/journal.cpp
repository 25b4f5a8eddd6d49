// SPDX-License-Identifier: Apache-2.0
#include "car_stress/journal.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace car::stress {
namespace {

// One bad mapping spoils everything after it: a few lines say it all.
constexpr std::uint64_t kPrintedFindings = 8;

}  // namespace

void Journal::begin_cycle(std::uint64_t cycle) {
  first_of_cycle_.clear();
  const std::lock_guard lock(mutex_);
  now_ = {cycle, "start of the cycle", Clock::now()};
}

void Journal::doing(std::string phase) {
  const std::lock_guard lock(mutex_);
  now_.phase = std::move(phase);
  now_.since = Clock::now();
}

Journal::Entry Journal::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void Journal::wrong(const std::string& what) {
  if (first_of_cycle_.empty()) first_of_cycle_ = where() + ": " + what;
  if (findings_++ >= kPrintedFindings) return;
  std::fprintf(stderr, "car_stress: %s: %s\n", where().c_str(), what.c_str());
}

std::string Journal::where() const {
  const Entry entry = now();
  return fmt::format("rank {}: cycle {}: {}", rank_, entry.cycle, entry.phase);
}

}  // namespace car::stress
