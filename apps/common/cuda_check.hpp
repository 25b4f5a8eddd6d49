// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime, and functions of the driver without linking it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace car {

/// @throws std::runtime_error that names the call
inline void check_cuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // what is not sticky must not fail the next call
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error) + " (" +
                           cudaGetErrorName(error) + ")");
}

/// A function of the driver as it was in `version` (13000 is 13.0); null when this driver has none.
/// `Function` is a PFN_ type of cudaTypedefs.h.
template <class Function>
Function driver_function(const char* name, unsigned version) noexcept {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace car
