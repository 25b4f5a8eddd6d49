// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call takes: a pure function of what all ranks know alike.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/tuning.hpp"

namespace librun {

/// The steps of the tables that fit a communicator, looked up once.
class Selector {
 public:
  /// @param own the user's tables, asked before the shipped ones; may be null
  /// @param key without element_bytes and registered
  Selector(const TuningTables* own, TuningKey key);

  /// @return never LIBRUN_ALGO_AUTO
  librun_algo_t select(std::size_t size_bytes, librun_dtype_t dtype, bool registered) const {
    const TuningStep* step = steps_[dtype][registered].data();
    while (size_bytes > step->up_to_bytes) ++step;
    return step->algo;
  }
  const TuningKey& key() const { return key_; }

 private:
  TuningKey key_;
  std::array<std::array<TuningSteps, 2>, LIBRUN_DTYPE_COUNT> steps_;
};

}  // namespace librun
