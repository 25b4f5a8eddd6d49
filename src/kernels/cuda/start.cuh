// SPDX-License-Identifier: Apache-2.0
// Starts a kernel and says whether that worked: <<<>>> would report errors of others.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace librun::cuda {

template <class... Parameters>
cudaError_t start(void (*kernel)(Parameters...), std::uint32_t n_blocks, std::uint32_t n_threads,
                  cudaStream_t stream, Parameters... arguments) {
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(n_blocks), dim3(n_threads),
                          pointers, 0, stream);
}

}  // namespace librun::cuda
