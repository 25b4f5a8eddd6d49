// SPDX-License-Identifier: Apache-2.0
// Faults that tests inject through LIBRUN_FAULT. Without LIBRUN_FAULT_HOOKS every call is empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace librun::fault {

#if LIBRUN_FAULT_HOOKS
inline constexpr bool kEnabled = true;
#else
inline constexpr bool kEnabled = false;
#endif

enum class Action { none, fail, corrupt };

/// `<point>@<rank>[#<nth>]:<action>[=<ms>]`; nth counts from 1, 0 means every time.
struct Spec {
  std::string point;
  int rank = 0;
  unsigned nth = 0;
  enum class Kind { delay, fail, die, stop, corrupt } kind = Kind::fail;
  unsigned delay_ms = 0;
};

/// Parses a comma separated list. @throws Error{invalid_argument} that names the bad part
std::vector<Spec> parse(std::string_view text);

/// Replaces the faults of this process. Thread-safe.
void arm(std::vector<Spec> specs);

namespace detail {
bool armed() noexcept;
Action hit(std::string_view point, int rank);
}  // namespace detail

/// Reports that `rank` is at `point`: sleeps, stops or ends the process here when that was asked
/// for; `fail` and `corrupt` are left to the caller.
inline Action at(std::string_view point, int rank) {
  if constexpr (!kEnabled) return Action::none;
  return detail::armed() ? detail::hit(point, rank) : Action::none;
}

}  // namespace librun::fault
