// SPDX-License-Identifier: Apache-2.0
// Why a communicator failed. The first cause stays.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "librun/error.hpp"

namespace librun {

struct Cause {
  librun_status_t code = LIBRUN_FAILED;
  int rank = -1;
  std::string text;
  std::string hint;

  static Cause of(const Error& error) {
    return {error.code(), error.rank(), error.text(), error.hint()};
  }
};

/// Thread-safe.
class FailureCell {
 public:
  /// @return true when this was the first
  bool set(Cause cause) {
    const std::lock_guard lock(mutex_);
    if (cause_) return false;
    cause_ = std::move(cause);
    return true;
  }
  std::optional<Cause> get() const {
    const std::lock_guard lock(mutex_);
    return cause_;
  }
  /// True once: for the caller that is the first to be told.
  bool take_report() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(reported_, true);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Cause> cause_;
  bool reported_ = false;
};

}  // namespace librun
