// SPDX-License-Identifier: Apache-2.0
// In place of the driver in builds without CUDA, or with a toolkit older than its checkpoints.
#include "common/checkpoint_driver.hpp"

namespace car {

std::unique_ptr<CheckpointDriver> make_checkpoint_driver() {
  throw CheckpointError(CheckpointError::Kind::unavailable,
                        "this build cannot checkpoint: it was made without CUDA 12.8 or later");
}

}  // namespace car
