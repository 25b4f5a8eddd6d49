// SPDX-License-Identifier: Apache-2.0
// What a process holds, by the kernel's own account, and whether it stays the same over a long run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device_memory.hpp"

namespace car {

struct Holdings {
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
  std::int64_t mappings = 0;      ///< lines of /proc/self/maps
  std::int64_t memory_files = 0;  ///< those of them that map a memory file
  std::int64_t shm_entries = 0;   ///< names of librun in /dev/shm, of any process
  std::int64_t resident_bytes = 0;
  std::int64_t device_bytes = 0;  ///< taken from the GPU since the start, by anybody; 0 on the host
};

/// One of the figures above.
struct HoldingsField {
  const char* name;
  std::int64_t Holdings::*value;
  std::int64_t slack;  ///< growth that allocators and drivers cause by themselves
};
const std::vector<HoldingsField>& holdings_fields();

class HoldingsProbe {
 public:
  explicit HoldingsProbe(const Device& device);
  Holdings look() const;

 private:
  const Device& device_;
  std::uint64_t available_at_start_ = 0;
};

/// The second quarter of a run beside its last: for each figure the most of the former and the
/// least of the latter, so that what only comes and goes does not count.
struct HoldingsTrend {
  std::uint64_t samples = 0;
  Holdings early, late;

  /// False for a run that is too short to tell.
  bool is_known() const { return samples >= kMinSamples; }
  /// "descriptors 24 -> 412, ..." of what has grown; "" when nothing has, or it is not known.
  std::string growth() const;

  static constexpr std::uint64_t kMinSamples = 8;
};

/// Samples of a run of any length, in bounded memory.
class HoldingsLog {
 public:
  void add(const Holdings& sample);
  HoldingsTrend trend() const;

 private:
  std::vector<Holdings> samples_;
  std::uint64_t added_ = 0;
  std::uint64_t stride_ = 1;  ///< every so many of those added are kept
};

}  // namespace car
