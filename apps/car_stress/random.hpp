// SPDX-License-Identifier: Apache-2.0
// A seeded sequence; equal on every rank that starts from the same seed.
#pragma once

#include <cstdint>

#include "common/verify.hpp"

namespace car::stress {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix64(seed)) {}
  /// A sequence of its own for the `index`-th thing of a kind.
  Random(std::uint64_t seed, std::uint64_t stream, std::uint64_t index)
      : state_(mix64(mix64(seed ^ mix64(stream)) ^ mix64(index))) {}

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15u); }
  /// 0 to bound - 1; 0 when bound is 0.
  std::uint64_t below(std::uint64_t bound) { return bound ? next() % bound : 0; }
  int below(int bound) { return static_cast<int>(below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace car::stress
