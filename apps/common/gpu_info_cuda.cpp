// SPDX-License-Identifier: Apache-2.0
#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "common/cuda_check.hpp"
#include "common/gpu_info.hpp"

namespace car {
namespace {

using nlohmann::json;

std::string version_of(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

/// Of the kernel module, e.g. "580.65.06"; "" when it does not say.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos)
      return word;
  return {};
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// An attribute that the runtime does not have; false where the driver does not know it either.
bool driver_says(CUdevice_attribute attribute, int ordinal) {
  static const auto get =
      driver_function<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 2000);
  int value = 0;
  return get && get(&value, attribute, ordinal) == CUDA_SUCCESS && value != 0;
}

json gpu_json(int ordinal) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  char bus_id[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ordinal), "cudaDeviceGetPCIBusId");
  return {
      {"ordinal", ordinal},
      {"name", properties.name},
      {"uuid", uuid_text(properties.uuid)},
      {"bus_id", bus_id},
      {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
      {"multiprocessors", properties.multiProcessorCount},
      {"memory_bytes", properties.totalGlobalMem},
      {"exports_file_descriptors",
       driver_says(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, ordinal)},
      {"exports_fabric_handles",
       driver_says(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, ordinal)},
  };
}

/// "self", "none", "access" (loads and stores) or "atomics" (those too, at full speed).
const char* reach(int from, int to) {
  if (from == to) return "self";
  int access = 0;
  int atomics = 0;
  check_cuda(cudaDeviceCanAccessPeer(&access, from, to), "cudaDeviceCanAccessPeer");
  if (!access) return "none";
  check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
             "cudaDeviceGetP2PAttribute");
  return atomics ? "atomics" : "access";
}

json driver_json() {
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  json checkpoint;
  for (const char* name :
       {"cuCheckpointProcessGetState", "cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint",
        "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"})
    checkpoint[name] = driver_function<void*>(name, 12080) != nullptr;
  return {{"cuda", version_of(driver)},
          {"runtime", version_of(runtime)},
          {"kernel_module", kernel_module_version()},
          {"checkpoint", checkpoint}};
}

}  // namespace

json collect_gpus() {
  try {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    json gpus = json::array();
    json peers = json::array();
    for (int from = 0; from < count; ++from) {
      gpus.push_back(gpu_json(from));
      json row = json::array();
      for (int to = 0; to < count; ++to) row.push_back(reach(from, to));
      peers.push_back(row);
    }
    return {{"available", count > 0}, {"driver", driver_json()}, {"gpus", gpus}, {"peers", peers}};
  } catch (const std::runtime_error& error) {
    return {{"available", false}, {"reason", error.what()}};
  }
}

}  // namespace car
