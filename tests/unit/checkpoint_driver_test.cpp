// SPDX-License-Identifier: Apache-2.0
// What the driver is asked for, and what becomes of its errors, over functions that are made up.
#include <cstring>
#include <string>

#include "common/checkpoint_functions.hpp"
#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/identity.hpp"
#include "support/catch.hpp"

using namespace car;

namespace {

CUresult answer = CUDA_SUCCESS;
CUprocessState process_state = CU_PROCESS_STATE_RUNNING;
int mps = 0;
unsigned lock_timeout_ms = 0;
std::vector<CUcheckpointGpuPair> pairs;

CUresult error_name(CUresult, const char** name) {
  *name = "CUDA_ERROR_MADE_UP";
  return CUDA_SUCCESS;
}
CUresult device_count(int* count) {
  *count = 2;
  return CUDA_SUCCESS;
}
CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult device_uuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, device + 1, sizeof(*uuid));
  return CUDA_SUCCESS;
}
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  CHECK(attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
  *value = mps;
  return CUDA_SUCCESS;
}
CUresult get_state(int, CUprocessState* state) {
  *state = process_state;
  return answer;
}
CUresult lock(int pid, CUcheckpointLockArgs* args) {
  CHECK(pid == 7);
  lock_timeout_ms = args->timeoutMs;
  return answer;
}
CUresult checkpoint(int, CUcheckpointCheckpointArgs*) { return answer; }
CUresult restore(int, CUcheckpointRestoreArgs* args) {
  pairs.clear();
  if (args->gpuPairsCount > 0) pairs.assign(args->gpuPairs, args->gpuPairs + args->gpuPairsCount);
  return answer;
}
CUresult unlock(int, CUcheckpointUnlockArgs*) { return answer; }
CUresult restore_thread(int, int* thread) {
  *thread = 11;
  return answer;
}
CUresult driver_version(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

std::unique_ptr<CheckpointDriver> made_up() {
  return make_checkpoint_driver({error_name, error_name, device_count, device_get, device_uuid,
                                 device_attribute, get_state, lock, checkpoint, restore, unlock,
                                 restore_thread});
}

template <class Call>
CheckpointError::Kind kind_of(CUresult result, const char* name, Call&& call) {
  answer = result;
  CheckpointError::Kind kind = CheckpointError::Kind::unavailable;
  try {
    call();
    FAIL("an error of the driver must be told");
  } catch (const CheckpointError& error) {
    kind = error.kind();
    CHECK(std::string(error.what()).find(name) != std::string::npos);
    CHECK(std::string(error.what()).find("process 7") != std::string::npos);
    CHECK(std::string(error.what()).find("CUDA_ERROR_MADE_UP") != std::string::npos);
  }
  answer = CUDA_SUCCESS;
  return kind;
}

}  // namespace

TEST_CASE("the steps and states of a process") {
  const auto driver = made_up();
  driver->lock(7, std::chrono::milliseconds(1234));
  CHECK(lock_timeout_ms == 1234);
  driver->checkpoint(7);
  process_state = CU_PROCESS_STATE_CHECKPOINTED;
  CHECK(driver->state(7) == CudaState::checkpointed);
  driver->restore(7, {});
  CHECK(pairs.empty());
  driver->restore(7, rotation_of(driver->gpus()));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].oldUuid.bytes[3] == 1);
  CHECK(pairs[0].newUuid.bytes[3] == 2);
  CHECK(pairs[1].newUuid.bytes[15] == 1);
  driver->unlock(7);
  CHECK(driver->restore_thread(7) == 11);
}

TEST_CASE("each error of the driver names call, process and error") {
  using Kind = CheckpointError::Kind;
  const auto driver = made_up();
  CHECK(kind_of(CUDA_ERROR_NOT_SUPPORTED, "cuCheckpointProcessLock",
                [&] { driver->lock(7, {}); }) == Kind::not_supported);
  CHECK(kind_of(CUDA_ERROR_NOT_READY, "cuCheckpointProcessLock", [&] { driver->lock(7, {}); }) ==
        Kind::timeout);
  CHECK(kind_of(CUDA_ERROR_INVALID_VALUE, "cuCheckpointProcessRestore",
                [&] { driver->restore(7, {}); }) == Kind::failed);
  CHECK(kind_of(CUDA_ERROR_INVALID_VALUE, "cuCheckpointProcessCheckpoint",
                [&] { driver->checkpoint(7); }) == Kind::failed);
  CHECK(kind_of(CUDA_ERROR_INVALID_VALUE, "cuCheckpointProcessUnlock",
                [&] { driver->unlock(7); }) == Kind::failed);
  CHECK(kind_of(CUDA_ERROR_INVALID_VALUE, "cuCheckpointProcessGetState",
                [&] { driver->state(7); }) == Kind::failed);
}

TEST_CASE("a GPU used through MPS, and a driver without checkpoints, are obstacles") {
  librun::cuda::Driver table{};
  table.device_get = device_get;
  table.device_get_attribute = device_attribute;
  table.driver_get_version = driver_version;
  table.checkpoint_process_lock = reinterpret_cast<void*>(lock);
  {
    const librun::cuda::DriverForTest replaced(table);
    CHECK(librun::cuda::checkpoint_obstacles(0).empty());
    mps = 1;
    const auto under_mps = librun::cuda::checkpoint_obstacles(1);
    mps = 0;
    REQUIRE(under_mps.size() == 1);
    CHECK(under_mps[0].find("CUDA device 1 is used through MPS") == 0);
  }
  table.checkpoint_process_lock = nullptr;
  const librun::cuda::DriverForTest replaced(table);
  const auto old = librun::cuda::checkpoint_obstacles(0);
  REQUIRE(old.size() == 1);
  CHECK(old[0].find("CUDA 12.4") != std::string::npos);
}
