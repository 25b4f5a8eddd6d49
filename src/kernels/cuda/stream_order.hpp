// SPDX-License-Identifier: Apache-2.0
// Keeps the launches of one communicator in order when they come on different streams.
#pragma once

#include "kernels/cuda/runtime.hpp"

namespace librun::cuda {

/// Launches that are being captured are left to the capture: its graph is ordered by whoever
/// launches it. Not thread-safe.
class StreamOrder {
 public:
  StreamOrder() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    last_ = UniqueEvent(event);
  }

  /// Before a launch on `stream`: waits for the last one. Equal handles need not be one stream:
  /// cudaStreamPerThread is another in each thread, and a destroyed one's handle is used again.
  void enter(cudaStream_t stream) {
    captured_ = is_captured(stream);
    if (!captured_ && any_)
      check(cudaStreamWaitEvent(stream, last_.get(), 0), "cudaStreamWaitEvent");
  }
  /// After it.
  void leave(cudaStream_t stream) {
    if (captured_) return;
    check(cudaEventRecord(last_.get(), stream), "cudaEventRecord");
    any_ = true;
  }

 private:
  static bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing",
          "the stream takes part in a capture that has failed, or the legacy stream was used "
          "during a capture.");
    return status == cudaStreamCaptureStatusActive;
  }

  UniqueEvent last_;
  bool any_ = false;
  bool captured_ = false;
};

}  // namespace librun::cuda
