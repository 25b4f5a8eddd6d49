// SPDX-License-Identifier: Apache-2.0
// Captured launches as a CUDA graph.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cuda/stream_order.hpp"
#include "kernels/device.hpp"

namespace librun::cuda {

class CapturedGraph final : public CapturedLaunches {
 public:
  CapturedGraph(int ordinal, std::shared_ptr<StreamOrder> order, UniqueGraph graph)
      : ordinal_(ordinal), order_(std::move(order)) {
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0), "cudaGraphInstantiate");
    exec_ = UniqueGraphExec(exec);
  }
  void launch(void* stream) override {
    const DeviceGuard guard(ordinal_);
    order_->enter(static_cast<cudaStream_t>(stream));
    check(cudaGraphLaunch(exec_.get(), static_cast<cudaStream_t>(stream)), "cudaGraphLaunch");
    order_->leave(static_cast<cudaStream_t>(stream));
  }

 private:
  int ordinal_;
  std::shared_ptr<StreamOrder> order_;
  UniqueGraphExec exec_;
};

}  // namespace librun::cuda
