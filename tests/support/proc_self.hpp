// SPDX-License-Identifier: Apache-2.0
// What a process holds, by the kernel's own account.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/device.hpp"

namespace librun_test {

struct ProcessHoldings {
  long descriptors = 0;
  long threads = 0;
  long shared_segments = 0;  ///< mappings of memory files; 0 on CUDA, whose driver has its own

  bool operator==(const ProcessHoldings&) const = default;
};

inline long entries_of(const char* folder) {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

/// @param process "self" or a number
inline long shared_segments_of(const std::string& process) {
  std::ifstream maps("/proc/" + process + "/maps");
  long segments = 0;
  for (std::string line; std::getline(maps, line);)
    segments += line.find("/memfd:") != std::string::npos;
  return segments;
}

inline ProcessHoldings process_holdings() {
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"),
          on_cuda() ? 0 : shared_segments_of("self")};
}

inline long mapping_count() {
  std::ifstream maps("/proc/self/maps");
  long lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

}  // namespace librun_test
