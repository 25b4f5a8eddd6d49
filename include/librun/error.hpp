// SPDX-License-Identifier: Apache-2.0
// The one exception type of librun.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "librun/types.h"

namespace librun {

/// What failed, on which rank, with which value (what()), and what to do about it (hint()).
class Error : public std::runtime_error {
 public:
  /// @param rank the first rank that failed, -1 when unknown
  Error(librun_status_t code, int rank, const std::string& what, std::string hint = {})
      : std::runtime_error(hint.empty() ? what : what + " Hint: " + hint),
        code_(code),
        rank_(rank),
        text_(what),
        hint_(std::move(hint)) {}

  librun_status_t code() const noexcept { return code_; }
  int rank() const noexcept { return rank_; }
  /// what() without the hint.
  const std::string& text() const noexcept { return text_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  librun_status_t code_;
  int rank_;
  std::string text_;
  std::string hint_;
};

}  // namespace librun
