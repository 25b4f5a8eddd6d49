// SPDX-License-Identifier: Apache-2.0
// The command line of car_bench.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "librun/types.h"

namespace car::bench {

/// How the times of the ranks become one.
enum class Average { rank0 = 0, mean = 1, min = 2, max = 3 };

struct Options {
  std::uint64_t min_bytes = 1024;
  std::uint64_t max_bytes = std::uint64_t{16} << 20;
  std::uint64_t step_bytes = 0;  ///< 0: multiply by step_factor
  std::uint64_t step_factor = 2;
  int iterations = 0;         ///< of one batch; 0: as many as the time for a size allows
  std::optional<int> warmup;  ///< nothing: 10, or 1 where a call is slow
  int aggregate = 1;
  int cycles = 1;  ///< 0: until interrupted
  std::vector<librun_dtype_t> dtypes{LIBRUN_FLOAT32};
  std::vector<librun_op_t> ops{LIBRUN_SUM};
  std::vector<librun_algo_t> algos{LIBRUN_ALGO_AUTO};
  bool all_dtypes = false;
  int checks = 1;
  int graph_calls = 0;  ///< 0: eager
  Average average = Average::max;
  bool registered = false;
  bool register_given = false;
  bool unaligned = false;
  librun_device_t device = LIBRUN_DEVICE_UNSET;
  bool baseline_mpi = false;
  bool baseline_nccl = false;
  bool baseline_baked = false;
  bool baseline_floor = false;
  int suspend_every = 0;
  double min_busbw = 0;
  std::uint64_t seed = 1;
  std::chrono::seconds timeout{300};
  std::string json_file;
  std::string csv_file;
  std::string tune_file;
  bool json_lines = false;
  bool stats = false;
  bool timestamps = false;
  bool quiet = false;
  bool osu = false;
  bool color = false;
  bool allow_singletons = false;
  ProgressMode progress = ProgressMode::automatic;
  bool info = false;
  bool list = false;
  std::string command;  ///< as typed, for the report
};

struct Parsed {
  Options options;
  bool run = true;
  int exit_code = 0;
  std::string text;  ///< what rank 0 prints when there is nothing to run
};

Parsed parse_options(int argc, char** argv);

/// The sizes to measure, in order.
std::vector<std::uint64_t> sizes_of(const Options& options);

}  // namespace car::bench
