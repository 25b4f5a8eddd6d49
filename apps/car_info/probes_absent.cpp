// SPDX-License-Identifier: Apache-2.0
// A build without CUDA.
#include <stdexcept>

#include "car_info/probes.hpp"

namespace car::info {

std::unique_ptr<Probes> make_cuda_probes(Device& /*device*/) {
  throw std::runtime_error("this build has no CUDA");
}

}  // namespace car::info
