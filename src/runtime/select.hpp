// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call takes: a pure function of what all ranks know alike.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "runtime/tuning.hpp"

namespace librun {

/// The steps of the tables that fit a communicator, looked up once.
class Selector {
 public:
  struct Step {
    std::size_t up_to_bytes;
    librun_algo_t algo;  ///< never LIBRUN_ALGO_AUTO
    bool by_user;        ///< a table of the user says so
  };

  /// @param own the user's tables, asked before the shipped ones; may be null
  /// @param key without element_bytes and registered
  Selector(const TuningTables* own, TuningKey key);

  const Step& select(std::size_t size_bytes, librun_dtype_t dtype, bool registered) const {
    const Step* step = steps_[dtype][registered].data();
    while (size_bytes > step->up_to_bytes) ++step;
    return *step;
  }
  const TuningKey& key() const { return key_; }
  /// Whether a table of the user fits anything.
  bool uses_own() const;

 private:
  using Steps = std::vector<Step>;

  TuningKey key_;
  std::array<std::array<Steps, 2>, LIBRUN_DTYPE_COUNT> steps_;
};

}  // namespace librun
