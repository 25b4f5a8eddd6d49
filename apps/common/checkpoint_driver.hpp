// SPDX-License-Identifier: Apache-2.0
// Checkpoints of processes by the NVIDIA driver: lock, checkpoint, restore, unlock, by PID.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace car {

using GpuUuid = std::array<unsigned char, 16>;

/// "GPU-xxxxxxxx-...".
std::string uuid_text(const GpuUuid& uuid);

/// What was on `from` comes back on `to`.
struct GpuMove {
  GpuUuid from, to;
  bool operator==(const GpuMove&) const = default;
};

/// "0=1,1=0" or UUIDs, or a mix. The driver wants every GPU named once on each side.
/// @param gpus the UUID of each ordinal @throws std::invalid_argument
std::vector<GpuMove> parse_gpu_map(const std::string& text, std::span<const GpuUuid> gpus);
/// Each GPU's contents go to the next one.
std::vector<GpuMove> rotation_of(std::span<const GpuUuid> gpus);

enum class CudaState { running, locked, checkpointed, failed, unknown };
const char* name_of(CudaState state);

/// A call of the driver that failed.
class CheckpointError : public std::runtime_error {
 public:
  enum class Kind {
    unavailable,    ///< no driver, or one without these functions
    not_supported,  ///< by this driver for this process: MPS, ...
    timeout,
    failed
  };
  CheckpointError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// Thread-safe. Every call may take long, and none but lock can be told when to give up.
/// @throws CheckpointError that names the call, the process and the driver's name for the error
class CheckpointDriver {
 public:
  virtual ~CheckpointDriver() = default;

  virtual CudaState state(pid_t pid) = 0;
  /// Waits for the work that the process has launched; its further calls of CUDA wait. A process
  /// that cannot be locked in time stays as it was.
  virtual void lock(pid_t pid, std::chrono::milliseconds timeout) = 0;
  /// Moves its memory to the host and lets go of the GPUs.
  virtual void checkpoint(pid_t pid) = 0;
  virtual void restore(pid_t pid, std::span<const GpuMove> moves) = 0;
  virtual void unlock(pid_t pid) = 0;
  /// The thread that may call restore for the process.
  virtual int restore_thread(pid_t pid) = 0;

  /// By ordinal.
  virtual std::vector<GpuUuid> gpus() = 0;
  /// Whether this process uses the GPU through MPS, where the driver checkpoints nothing.
  virtual bool is_shared_by_mps(int ordinal) = 0;
};

/// @throws CheckpointError{unavailable} that says what is missing
std::unique_ptr<CheckpointDriver> make_checkpoint_driver();

}  // namespace car
