// SPDX-License-Identifier: Apache-2.0
// The command line of car_checkpoint.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace car::checkpoint {

enum class Action { cycle, lock, checkpoint, restore, unlock };
const char* name_of(Action action);

struct Options {
  std::vector<pid_t> pids;  ///< empty: those of the job, or all that use librun
  std::string job;
  bool all = false;
  bool list = false;
  Action action = Action::cycle;
  /// Nothing: until a signal, or Enter on a terminal.
  std::optional<std::chrono::seconds> hold = std::chrono::seconds(0);
  std::chrono::seconds timeout{120};
  std::string gpu_map;
  std::string json_file;  ///< "": the table; "-": JSON on stdout instead
};

/// What is to be done after parsing: run, or print `text` and end with `exit_code`.
struct Parsed {
  Options options;
  bool run = true;
  int exit_code = 0;
  std::string text;
};

Parsed parse_options(int argc, char** argv);

}  // namespace car::checkpoint
