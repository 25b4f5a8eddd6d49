// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/identity.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/runtime.hpp"

namespace librun::cuda {

std::string device_uuid(int ordinal) {
  CUdevice device{};
  check_driver(driver().device_get(&device, ordinal), "cuDeviceGet", "there is no such device");
  CUuuid uuid{};
  check_driver(driver().device_get_uuid(&uuid, device), "cuDeviceGetUuid",
               "the device has no identity");
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

std::string device_name(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  return properties.name;
}

bool has_descriptors(int ordinal) {
  CUdevice device{};
  int supported = 0;
  return driver().device_get(&device, ordinal) == CUDA_SUCCESS &&
         driver().device_get_attribute(
             &supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) ==
             CUDA_SUCCESS &&
         supported != 0;
}

bool has_programmatic_launch(int ordinal) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal) ==
             cudaSuccess &&
         major >= 9;
}

void check_reach(int ordinal, const std::string& uuid) {
  int n_devices = 0;
  check(cudaGetDeviceCount(&n_devices), "cudaGetDeviceCount");
  for (int other = 0; other < n_devices; ++other) {
    if (other == ordinal || device_uuid(other) != uuid) continue;
    int reaches = 0;
    check(cudaDeviceCanAccessPeer(&reaches, ordinal, other), "cudaDeviceCanAccessPeer");
    const std::string pair = "GPU " + std::to_string(ordinal) + " and GPU " + std::to_string(other);
    if (!reaches)
      throw Error(LIBRUN_UNSUPPORTED, -1, pair + " have no peer access to each other.",
                  "car_info shows which GPUs do.");
    int atomics = 0;
    check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, ordinal, other),
          "cudaDeviceGetP2PAttribute");
    if (!atomics)
      throw Error(LIBRUN_UNSUPPORTED, -1,
                  pair + " are not linked by NVLink: 16-byte lines might arrive in parts.",
                  "car_info shows which GPUs are linked.");
  }
}

std::vector<std::string> checkpoint_obstacles(int ordinal) {
  std::vector<std::string> obstacles;
  if (!driver().checkpoint_process_lock) {
    int version = 0;
    if (driver().driver_get_version) driver().driver_get_version(&version);
    obstacles.push_back("the driver is for CUDA " + std::to_string(version / 1000) + "." +
                        std::to_string(version % 1000 / 10) +
                        " and cannot checkpoint processes: it takes one for CUDA 12.8 (570) or "
                        "later");
  }
  CUdevice device{};
  int shared = 0;
  if (driver().device_get(&device, ordinal) == CUDA_SUCCESS &&
      driver().device_get_attribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) ==
          CUDA_SUCCESS &&
      shared != 0)
    obstacles.push_back("CUDA device " + std::to_string(ordinal) +
                        " is used through MPS, where the driver checkpoints no process: run "
                        "without MPS");
  return obstacles;
}

}  // namespace librun::cuda
