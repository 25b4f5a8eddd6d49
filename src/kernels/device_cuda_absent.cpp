// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA backend in builds without it.
#include "kernels/device.hpp"
#include "librun/error.hpp"

namespace librun {

std::unique_ptr<Device> make_cuda_device(int /*ordinal*/, const CudaOptions& /*options*/) {
  throw Error(LIBRUN_UNSUPPORTED, -1, "this build of librun has no CUDA backend.",
              "use --device host or LIBRUN_DEVICE=host.");
}

}  // namespace librun
