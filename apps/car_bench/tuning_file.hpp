// SPDX-License-Identifier: Apache-2.0
// Files of tables that LIBRUN_TUNING names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "car_bench/tuning_fit.hpp"

namespace car::bench {

/// One table, and what it is for.
struct TunedTable {
  std::string device;
  bool shared = false;
  int world = 1;
  std::size_t element_bytes = 0;  ///< 0: any
  bool registered = false;
  std::vector<FittedStep> steps;
  std::string made;  ///< how, for people
};

/// The text of `path`, "" when it does not exist yet. @throws std::runtime_error when it holds
/// something else than tables
std::string read_tuning(const std::string& path);

/// The tables in front of those of `old_text`, in place of the ones there for the same.
std::string with_tables(const std::string& old_text, const std::vector<TunedTable>& tables);

}  // namespace car::bench
