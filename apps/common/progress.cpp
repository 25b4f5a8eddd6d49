// SPDX-License-Identifier: Apache-2.0
// Throttling and terminal detection of the progress line.
#include "common/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace car {
namespace {

constexpr std::chrono::milliseconds kRewrittenInterval{500};
constexpr std::chrono::seconds kPlainInterval{30};
constexpr std::chrono::milliseconds kLetLauncherRead{30};

// mpirun gives its ranks a pipe for stderr, and a terminal of its own for stdout wherever its
// output goes: only its own stderr tells whether somebody watches.
bool launcher_has_terminal() {
  const std::string link = "/proc/" + std::to_string(getppid()) + "/fd/2";
  char target[64] = {};
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) return false;
  const std::string_view name(target);
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

bool watched_by_people() {
  if (isatty(STDERR_FILENO)) return true;
  const bool launched = std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE");
  return launched && launcher_has_terminal();
}

}  // namespace

std::optional<ProgressMode> parse_progress_mode(std::string_view text) {
  if (text == "auto") return ProgressMode::automatic;
  if (text == "always") return ProgressMode::always;
  if (text == "never") return ProgressMode::never;
  return std::nullopt;
}

Progress::Progress(ProgressMode mode, bool is_rank0) : style_(Style::off) {
  if (!is_rank0 || mode == ProgressMode::never) return;
  const bool rewritten = mode == ProgressMode::always || watched_by_people();
  style_ = rewritten ? Style::rewritten : Style::plain;
}

bool Progress::due() const {
  if (style_ == Style::off) return false;
  const auto elapsed = Clock::now() - last_;
  return style_ == Style::rewritten ? elapsed >= kRewrittenInterval : elapsed >= kPlainInterval;
}

void Progress::update(const std::string& line) {
  if (!due()) return;
  last_ = Clock::now();
  if (style_ == Style::plain) {
    std::fprintf(stderr, "%s\n", line.c_str());
  } else {
    // Spaces rather than an erase sequence: mpirun may send the line into a file after all.
    const std::size_t padding = width_ > line.size() ? width_ - line.size() : 0;
    std::fprintf(stderr, "\r%s%*s", line.c_str(), static_cast<int>(padding), "");
    width_ = line.size();
    line_open_ = true;
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (!line_open_) return;
  std::fputc('\n', stderr);
  std::fflush(stderr);
  // mpirun reads stdout and stderr by turns: what follows on stdout must not overtake the new line.
  std::this_thread::sleep_for(kLetLauncherRead);
  line_open_ = false;
  width_ = 0;
}

}  // namespace car
