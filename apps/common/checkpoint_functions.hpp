// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver that checkpoints take; a test puts others in their place.
#pragma once

#include <cudaTypedefs.h>

#include <memory>

#include "common/checkpoint_driver.hpp"

namespace car {

struct CheckpointFunctions {
  PFN_cuGetErrorName_v6000 get_error_name;
  PFN_cuGetErrorString_v6000 get_error_string;
  PFN_cuDeviceGetCount_v2000 device_get_count;
  PFN_cuDeviceGet_v2000 device_get;
  PFN_cuDeviceGetUuid_v11040 device_get_uuid;
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute;
  PFN_cuCheckpointProcessGetState_v12080 get_state;
  PFN_cuCheckpointProcessLock_v12080 lock;
  PFN_cuCheckpointProcessCheckpoint_v12080 checkpoint;
  PFN_cuCheckpointProcessRestore_v12080 restore;
  PFN_cuCheckpointProcessUnlock_v12080 unlock;
  PFN_cuCheckpointProcessGetRestoreThreadId_v12080 get_restore_thread;
};

std::unique_ptr<CheckpointDriver> make_checkpoint_driver(const CheckpointFunctions& functions);

}  // namespace car
