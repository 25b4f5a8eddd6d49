// SPDX-License-Identifier: Apache-2.0
// In place of CUDA in builds without it.
#include "common/gpu_info.hpp"

namespace car {

nlohmann::json collect_gpus() {
  return {{"available", false}, {"reason", "this build has no CUDA backend"}};
}

}  // namespace car
