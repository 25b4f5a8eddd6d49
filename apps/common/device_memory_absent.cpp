// SPDX-License-Identifier: Apache-2.0
// In place of CUDA in builds without it.
#include <stdexcept>

#include "common/device_memory.hpp"

namespace car {

std::unique_ptr<Device> make_cuda_device(int) {
  throw std::runtime_error(
      "this build has no CUDA backend: configure with -DLIBRUN_WITH_CUDA=ON, or use "
      "--device host");
}

int cuda_device_count() noexcept { return 0; }

}  // namespace car
