// SPDX-License-Identifier: Apache-2.0
// The progress line: rewritten in place for people, a plain line now and then for logs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace car {

/// never: silent. always: the rewritten line even when stderr is no terminal.
enum class ProgressMode { automatic, always, never };

/// "auto", "always" or "never"; nothing for another text.
std::optional<ProgressMode> parse_progress_mode(std::string_view text);

/// Writes to stderr, from rank 0 only. Not thread-safe.
class Progress {
 public:
  Progress(ProgressMode mode, bool is_rank0);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// True when update() would show something now, so that callers need not build the line.
  bool due() const;
  /// Shows `line`, at most twice a second for people and every 30 s in logs.
  void update(const std::string& line);
  /// Ends the rewritten line, so that other output starts on a fresh one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Style { off, rewritten, plain };

  Style style_;
  Clock::time_point last_ = Clock::now();
  bool line_open_ = false;
  std::size_t width_ = 0;
};

}  // namespace car
