// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/ll.cuh"
#include "kernels/cuda/start.cuh"

namespace librun::cuda {

cudaError_t launch_ll(const KernelArgs& args, const Shape& shape) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(ll<decltype(variant), KernelArgs>, shape.geometry, args);
  });
}

}  // namespace librun::cuda
