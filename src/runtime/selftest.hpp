// SPDX-License-Identifier: Apache-2.0
// One small sum per algorithm, run when a communicator is created.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "librun/error.hpp"
#include "runtime/device_memory.hpp"

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
  SelftestData(const std::shared_ptr<Device>& device, int rank, int world)
      : world_(world),
        device_(device),
        send_(device, Memory::local, kCount * sizeof(int)),
        recv_(device, Memory::local, kCount * sizeof(int)) {
    std::vector<int> input(kCount);
    for (int i = 0; i < kCount; ++i) input[static_cast<std::size_t>(i)] = (rank + 1) * (i + 3);
    device_->copy(send_.get(), input.data(), kCount * sizeof(int));
  }
  const void* send() const { return send_.get(); }
  void* recv() { return recv_.get(); }
  std::size_t count() const { return kCount; }

  /// @throws Error{failed}
  void verify(const std::string& what) const {
    std::vector<int> output(kCount);
    device_->copy(output.data(), recv_.get(), kCount * sizeof(int));
    for (int i = 0; i < kCount; ++i) {
      const int expected = world_ * (world_ + 1) / 2 * (i + 3);
      const int got = output[static_cast<std::size_t>(i)];
      if (got != expected)
        throw Error(LIBRUN_FAILED, -1,
                    what + " gave " + std::to_string(got) + " instead of " +
                        std::to_string(expected) + " at element " + std::to_string(i) + ".");
    }
  }

 private:
  static constexpr int kCount = 301;
  int world_;
  std::shared_ptr<Device> device_;
  DeviceMemory<int> send_;
  DeviceMemory<int> recv_;
};

}  // namespace librun
