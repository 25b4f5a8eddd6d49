// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/one_shot.cuh"
#include "kernels/cuda/start.cuh"

namespace librun::cuda {

cudaError_t launch_one_shot(const KernelArgs& args, const Shape& shape) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(one_shot<decltype(variant), KernelArgs>, shape.geometry, args);
  });
}

}  // namespace librun::cuda
