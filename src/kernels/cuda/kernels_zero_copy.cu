// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/start.cuh"
#include "kernels/cuda/zero_copy.cuh"

namespace librun::cuda {

cudaError_t launch_zero_copy(const KernelArgs& args, const Shape& shape) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(zero_copy<decltype(variant)>, shape.geometry, args);
  });
}

}  // namespace librun::cuda
