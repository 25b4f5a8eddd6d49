// SPDX-License-Identifier: Apache-2.0
// Starts a kernel and says whether that worked: <<<>>> would report errors of others.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch.hpp"

namespace librun::cuda {

template <class... Parameters>
cudaError_t start(void (*kernel)(Parameters...), const Geometry& geometry,
                  const Parameters&... arguments) {
  const void* pointers[] = {&arguments...};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(geometry.n_blocks);
  config.blockDim = dim3(geometry.n_threads);
  config.stream = geometry.stream;
  config.attrs = &attribute;
  config.numAttrs = geometry.early ? 1 : 0;
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel),
                             const_cast<void**>(pointers));
}

}  // namespace librun::cuda
