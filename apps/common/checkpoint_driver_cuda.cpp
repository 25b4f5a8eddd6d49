// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "common/checkpoint_functions.hpp"
#include "common/cuda_check.hpp"

namespace car {
namespace {

using Kind = CheckpointError::Kind;

static_assert(sizeof(CUuuid) == sizeof(GpuUuid));

class Driver final : public CheckpointDriver {
 public:
  explicit Driver(const CheckpointFunctions& functions) : call_(functions) {}

  CudaState state(pid_t pid) override {
    CUprocessState state{};
    check(call_.get_state(pid, &state), "cuCheckpointProcessGetState", pid);
    switch (state) {
      case CU_PROCESS_STATE_RUNNING:
        return CudaState::running;
      case CU_PROCESS_STATE_LOCKED:
        return CudaState::locked;
      case CU_PROCESS_STATE_CHECKPOINTED:
        return CudaState::checkpointed;
      case CU_PROCESS_STATE_FAILED:
        return CudaState::failed;
    }
    return CudaState::unknown;
  }
  void lock(pid_t pid, std::chrono::milliseconds timeout) override {
    CUcheckpointLockArgs args{};
    args.timeoutMs = static_cast<unsigned>(timeout.count());
    check(call_.lock(pid, &args), "cuCheckpointProcessLock", pid);
  }
  void checkpoint(pid_t pid) override {
    CUcheckpointCheckpointArgs args{};
    check(call_.checkpoint(pid, &args), "cuCheckpointProcessCheckpoint", pid);
  }
  void restore(pid_t pid, std::span<const GpuMove> moves) override {
    std::vector<CUcheckpointGpuPair> pairs(moves.size());
    for (std::size_t i = 0; i < moves.size(); ++i) {
      std::memcpy(&pairs[i].oldUuid, moves[i].from.data(), sizeof(CUuuid));
      std::memcpy(&pairs[i].newUuid, moves[i].to.data(), sizeof(CUuuid));
    }
    CUcheckpointRestoreArgs args{};
    args.gpuPairs = pairs.empty() ? nullptr : pairs.data();
    args.gpuPairsCount = static_cast<unsigned>(pairs.size());
    check(call_.restore(pid, &args), "cuCheckpointProcessRestore", pid);
  }
  void unlock(pid_t pid) override {
    CUcheckpointUnlockArgs args{};
    check(call_.unlock(pid, &args), "cuCheckpointProcessUnlock", pid);
  }
  int restore_thread(pid_t pid) override {
    int thread = 0;
    check(call_.get_restore_thread(pid, &thread), "cuCheckpointProcessGetRestoreThreadId", pid);
    return thread;
  }

  std::vector<GpuUuid> gpus() override {
    int count = 0;
    check(call_.device_get_count(&count), "cuDeviceGetCount");
    std::vector<GpuUuid> uuids(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      CUuuid uuid{};
      check(call_.device_get_uuid(&uuid, device(ordinal)), "cuDeviceGetUuid");
      std::memcpy(uuids[static_cast<std::size_t>(ordinal)].data(), &uuid, sizeof(uuid));
    }
    return uuids;
  }
  bool is_shared_by_mps(int ordinal) override {
    int shared = 0;
    check(call_.device_get_attribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device(ordinal)),
          "cuDeviceGetAttribute");
    return shared != 0;
  }

 private:
  CUdevice device(int ordinal) const {
    CUdevice device{};
    check(call_.device_get(&device, ordinal), "cuDeviceGet");
    return device;
  }
  void check(CUresult result, const char* call, pid_t pid = 0) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    const char* text = nullptr;
    if (call_.get_error_name(result, &name) != CUDA_SUCCESS || !name) name = "unknown error";
    if (call_.get_error_string(result, &text) != CUDA_SUCCESS || !text) text = "?";
    const Kind kind = result == CUDA_ERROR_NOT_SUPPORTED ? Kind::not_supported
                      : result == CUDA_ERROR_NOT_READY   ? Kind::timeout
                      : result == CUDA_ERROR_TIMEOUT     ? Kind::timeout
                                                         : Kind::failed;
    throw CheckpointError(
        kind, fmt::format("{}{}: {} ({}, {})", call, pid ? fmt::format(" of process {}", pid) : "",
                          text, name, static_cast<int>(result)));
  }

  CheckpointFunctions call_;
};

template <class Function>
void find(const char* name, unsigned version, Function& function) {
  function = driver_function<Function>(name, version);
  if (function) return;
  int driver = 0;
  cudaDriverGetVersion(&driver);
  throw CheckpointError(
      Kind::unavailable,
      driver == 0
          ? std::string("there is no CUDA driver")
          : fmt::format("the driver is for CUDA {}.{} and has no {}: it takes one for CUDA 12.8 "
                        "(570) or later",
                        driver / 1000, driver % 1000 / 10, name));
}

}  // namespace

std::unique_ptr<CheckpointDriver> make_checkpoint_driver(const CheckpointFunctions& functions) {
  return std::make_unique<Driver>(functions);
}

std::unique_ptr<CheckpointDriver> make_checkpoint_driver() {
  CheckpointFunctions functions{};
  PFN_cuInit_v2000 init{};
  find("cuInit", 2000, init);
  find("cuGetErrorName", 6000, functions.get_error_name);
  find("cuGetErrorString", 6000, functions.get_error_string);
  find("cuDeviceGetCount", 2000, functions.device_get_count);
  find("cuDeviceGet", 2000, functions.device_get);
  find("cuDeviceGetUuid", 11040, functions.device_get_uuid);
  find("cuDeviceGetAttribute", 2000, functions.device_get_attribute);
  find("cuCheckpointProcessGetState", 12080, functions.get_state);
  find("cuCheckpointProcessLock", 12080, functions.lock);
  find("cuCheckpointProcessCheckpoint", 12080, functions.checkpoint);
  find("cuCheckpointProcessRestore", 12080, functions.restore);
  find("cuCheckpointProcessUnlock", 12080, functions.unlock);
  find("cuCheckpointProcessGetRestoreThreadId", 12080, functions.get_restore_thread);
  // Makes no context: this process may watch others without taking memory of a GPU.
  if (const CUresult result = init(0); result != CUDA_SUCCESS) {
    const char* name = nullptr;
    functions.get_error_name(result, &name);
    throw CheckpointError(Kind::unavailable,
                          fmt::format("the CUDA driver does not start (cuInit: {}, {})",
                                      name ? name : "unknown error", static_cast<int>(result)));
  }
  return make_checkpoint_driver(functions);
}

}  // namespace car
