// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/start.cuh"
#include "kernels/cuda/two_shot.cuh"

namespace librun::cuda {

cudaError_t launch_two_shot(const KernelArgs& args, const Shape& shape) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(two_shot<decltype(variant), KernelArgs>, shape.geometry, args);
  });
}

}  // namespace librun::cuda
