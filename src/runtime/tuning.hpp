// SPDX-License-Identifier: Apache-2.0
// Which algorithm is the fastest at which size, as measured: tables that car_bench --tune writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "librun/types.h"

namespace librun {

/// Calls of up to so many bytes, beyond those of the step before, take `algo`.
struct TuningStep {
  std::size_t up_to_bytes;
  librun_algo_t algo;
};

/// In ascending order.
using TuningSteps = std::vector<TuningStep>;

/// What a call is measured under. All ranks know it alike.
struct TuningKey {
  librun_device_t kind = LIBRUN_DEVICE_HOST;
  std::string device;   ///< DeviceInfo::name
  bool shared = false;  ///< ranks share a GPU, or cores
  int world = 1;
  std::size_t element_bytes = 0;  ///< 1, 2, 4 or 8
  bool registered = false;        ///< the communicator has registered buffers that peers can map
};

/// Steps, and for which keys.
struct TuningTable {
  std::string device;  ///< how the device's name begins; "cuda": any GPU
  std::optional<bool> shared;
  int min_world = 1;
  int max_world = LIBRUN_MAX_WORLD;
  std::size_t element_bytes = 0;  ///< 0: any
  std::optional<bool> registered;
  std::size_t from_bytes = 0;
  TuningSteps steps;

  bool is_for(const TuningKey& key) const;
  /// Nothing for sizes before from_bytes and beyond the last step: other tables decide there.
  std::optional<librun_algo_t> algo_for(std::size_t size_bytes) const;
};

/// The first table that fits a key and a size counts.
class TuningTables {
 public:
  /// What librun ships.
  static const TuningTables& shipped();
  /// @param origin of the text, for messages @throws Error{invalid_argument} that says where
  static TuningTables parse(const std::string& text, const std::string& origin);
  /// @throws Error{invalid_argument}
  static TuningTables read(const std::string& path);

  /// In order.
  std::vector<const TuningTable*> fitting(const TuningKey& key) const;
  /// The same for the same text.
  std::uint64_t digest() const { return digest_; }

 private:
  std::vector<TuningTable> tables_;
  std::uint64_t digest_ = 0;
};

}  // namespace librun
