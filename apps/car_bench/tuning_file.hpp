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
  std::uint64_t from_bytes = 0;
  std::vector<FittedStep> steps;
  std::string made;  ///< how, for people
};

/// The text of `path`, "" when it does not exist yet or is empty. @throws std::runtime_error when
/// it holds something that the library would not take as tables
std::string read_tuning(const std::string& path);

/// The tables in front of those of `old_text`; of these, the ones for the same go when the new ones
/// decide as much. All else of the text stays.
std::string with_tables(const std::string& old_text, const std::vector<TunedTable>& tables);

/// Puts the tables into the file. @throws std::runtime_error; the file stays as it was then
void add_tables(const std::string& path, const std::vector<TunedTable>& tables);

}  // namespace car::bench
