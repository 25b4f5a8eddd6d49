// SPDX-License-Identifier: Apache-2.0
// Small owners and checks for the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/unique_handle.hpp"
#include "librun/error.hpp"

namespace librun::cuda {

/// @throws Error{cuda}
inline void check(cudaError_t error, const char* call, const char* hint = "") {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // what does not stick is told once
  throw Error(LIBRUN_CUDA, -1,
              std::string(call) + " failed (" + cudaGetErrorString(error) + ", " +
                  std::to_string(error) + ").",
              hint);
}

/// Makes a device current, and gives the caller's back on every path.
class DeviceGuard {
 public:
  explicit DeviceGuard(int ordinal) {
    if (cudaGetDevice(&before_) != cudaSuccess) return;
    // A fresh thread may name the device without having its context.
    static thread_local int bound = -1;
    if (before_ == ordinal && bound == ordinal) return;
    if (cudaSetDevice(ordinal) != cudaSuccess) return;
    bound = ordinal;
    changed_ = before_ != ordinal;
  }
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(before_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Lets this thread make calls that a capture elsewhere in the process would forbid; they have
/// nothing to do with it.
class CaptureGuard {
 public:
  CaptureGuard() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~CaptureGuard() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

struct StreamTraits {
  using type = cudaStream_t;
  static type null() noexcept { return nullptr; }
  static void close(type stream) noexcept { cudaStreamDestroy(stream); }
};
using UniqueStream = UniqueHandle<StreamTraits>;

struct EventTraits {
  using type = cudaEvent_t;
  static type null() noexcept { return nullptr; }
  static void close(type event) noexcept { cudaEventDestroy(event); }
};
using UniqueEvent = UniqueHandle<EventTraits>;

struct GraphTraits {
  using type = cudaGraph_t;
  static type null() noexcept { return nullptr; }
  static void close(type graph) noexcept { cudaGraphDestroy(graph); }
};
using UniqueGraph = UniqueHandle<GraphTraits>;

struct GraphExecTraits {
  using type = cudaGraphExec_t;
  static type null() noexcept { return nullptr; }
  static void close(type graph) noexcept { cudaGraphExecDestroy(graph); }
};
using UniqueGraphExec = UniqueHandle<GraphExecTraits>;

}  // namespace librun::cuda
