// SPDX-License-Identifier: Apache-2.0
// One small sum per algorithm, run when a communicator is created.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "librun/error.hpp"

namespace librun {

struct SelftestCase {
  const char* name;
  Body body;
};

/// zero_copy needs registered buffers, and the halves of stepped need barriers: the proof of
/// mappings covers what they add.
inline std::span<const SelftestCase> selftest_cases() {
  static constexpr SelftestCase kCases[] = {
      {"ll", Body::ll}, {"one_shot", Body::one_shot}, {"two_shot", Body::two_shot}};
  return kCases;
}

/// Values that differ on every rank and at every element, and their exact sum.
class SelftestData {
 public:
  SelftestData(int rank, int world) : world_(world), send_(kCount), recv_(kCount, -1) {
    for (int i = 0; i < kCount; ++i) send_[static_cast<std::size_t>(i)] = (rank + 1) * (i + 3);
  }
  const void* send() const { return send_.data(); }
  void* recv() { return recv_.data(); }
  std::size_t count() const { return kCount; }

  /// @throws Error{failed}
  void verify(const std::string& what) const {
    for (int i = 0; i < kCount; ++i) {
      const int expected = world_ * (world_ + 1) / 2 * (i + 3);
      if (recv_[static_cast<std::size_t>(i)] != expected)
        throw Error(LIBRUN_FAILED, -1,
                    what + " gave " + std::to_string(recv_[static_cast<std::size_t>(i)]) +
                        " instead of " + std::to_string(expected) + " at element " +
                        std::to_string(i) + ".");
    }
  }

 private:
  static constexpr int kCount = 301;
  int world_;
  std::vector<int> send_;
  std::vector<int> recv_;
};

}  // namespace librun
