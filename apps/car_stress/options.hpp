// SPDX-License-Identifier: Apache-2.0
// The command line of car_stress.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "car_stress/plan.hpp"
#include "common/progress.hpp"
#include "librun/types.h"

namespace car::stress {

enum class Checkpoint { none, fake, driver };

/// "r@cycle" of --kill-rank.
struct Kill {
  int rank = 0;
  std::uint64_t cycle = 0;
};

struct Options {
  std::uint64_t cycles = 100;        ///< 0: until the time is up
  std::chrono::seconds duration{0};  ///< 0: until the cycles are done
  std::uint64_t seed = 1;
  std::uint64_t first_cycle = 0;
  int calls_per_cycle = 10;
  std::size_t max_bytes = std::size_t{4} << 20;
  int groups = 4;
  int graphs = 3;
  librun_device_t device = LIBRUN_DEVICE_UNSET;
  librun_algo_t algo = LIBRUN_ALGO_AUTO;
  Checkpoint checkpoint = Checkpoint::none;
  bool rotate_gpus = false;
  std::optional<Kill> kill;
  std::string scenario;  ///< which one these options come from
  int fewest_ranks = 1;  ///< that it needs
  std::string fault;
  std::string expected_failure;
  bool keep_going = false;
  std::chrono::seconds timeout{90};
  ProgressMode progress = ProgressMode::automatic;
  std::string json_file;  ///< "-": stdout
  std::string junit_file;
  bool json_lines = false;
  bool list = false;
  bool info = false;
};

/// What is to be done after parsing: run, or print `text` and end with `exit_code`.
struct Parsed {
  Options options;
  bool run = true;
  int exit_code = 0;
  std::string text;
};

Parsed parse_options(int argc, char** argv);

const char* name_of(Checkpoint checkpoint);

/// The limits that the plan depends on.
Limits limits_of(const Options& options, int world);

/// The command that runs `cycle` alone with everything else equal.
std::string replay_command(const Options& options, int world, std::uint64_t cycle);

/// Decimal, or hexadecimal after 0x. @throws std::invalid_argument: `text` is not `what`
std::uint64_t parse_number(std::string_view text, const char* what);
/// "90s", "10m", "1h", or plain seconds. @throws std::invalid_argument
std::chrono::seconds parse_duration(std::string_view text);
/// "r@cycle". @throws std::invalid_argument
Kill parse_kill(std::string_view text);

}  // namespace car::stress
