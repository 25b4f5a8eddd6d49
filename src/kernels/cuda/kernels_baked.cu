// SPDX-License-Identifier: Apache-2.0
// The kernels with pointers as arguments, for measuring what the table costs: float sums only.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/ll.cuh"
#include "kernels/cuda/start.cuh"
#include "kernels/cuda/two_shot.cuh"

namespace librun::cuda {

cudaError_t launch_baked(const BakedArgs& args, const Shape& shape) {
  if (shape.dtype != LIBRUN_FLOAT32 || args.call.op != LIBRUN_SUM) return cudaErrorNotSupported;
  return with_world<float>(shape.world, [&](auto variant) {
    using V = decltype(variant);
    switch (args.call.body) {
      case Body::ll:
        return start(ll<V, BakedArgs>, shape.geometry, args);
      case Body::one_shot:
        return start(one_shot<V, BakedArgs>, shape.geometry, args);
      case Body::two_shot:
        return start(two_shot<V, BakedArgs>, shape.geometry, args);
      default:
        return cudaErrorNotSupported;
    }
  });
}

}  // namespace librun::cuda
