// SPDX-License-Identifier: Apache-2.0
#include "common/gpu_usage.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace car {
namespace {

// Of NVML's interface, which has no header in the CUDA toolkit.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kNvmlMemoryVersion = sizeof(NvmlMemory) | 2u << 24;
constexpr int kNvmlSuccess = 0;

}  // namespace

struct GpuUsageMeter::Nvml {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*get_count)(unsigned*) = nullptr;
  int (*get_device)(unsigned, NvmlDevice*) = nullptr;
  int (*get_uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*get_memory)(NvmlDevice, NvmlMemory*) = nullptr;
  bool is_open = false;

  template <class Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
  bool open() {
    library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
           find("nvmlDeviceGetCount_v2", get_count) &&
           find("nvmlDeviceGetHandleByIndex_v2", get_device) &&
           find("nvmlDeviceGetUUID", get_uuid) && find("nvmlDeviceGetMemoryInfo_v2", get_memory) &&
           init() == kNvmlSuccess;
  }
  ~Nvml() {
    if (is_open) shutdown();
    if (library) ::dlclose(library);
  }
};

GpuUsageMeter::GpuUsageMeter() : nvml_(std::make_unique<Nvml>()) { nvml_->is_open = nvml_->open(); }
GpuUsageMeter::~GpuUsageMeter() = default;

std::vector<GpuUsage> GpuUsageMeter::read() const {
  unsigned count = 0;
  if (!nvml_->is_open || nvml_->get_count(&count) != kNvmlSuccess) return {};
  std::vector<GpuUsage> usage;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    char uuid[96] = {};
    NvmlMemory memory{};
    memory.version = kNvmlMemoryVersion;
    if (nvml_->get_device(i, &device) != kNvmlSuccess ||
        nvml_->get_uuid(device, uuid, sizeof(uuid)) != kNvmlSuccess ||
        nvml_->get_memory(device, &memory) != kNvmlSuccess)
      return {};
    usage.push_back({uuid, memory.used});
  }
  return usage;
}

std::string describe(const std::vector<GpuUsage>& usage) {
  std::string text;
  for (const GpuUsage& gpu : usage)
    text += fmt::format("{}{} MiB", text.empty() ? "" : ", ", gpu.used_bytes >> 20);
  return text.empty() ? "n/a" : text;
}

}  // namespace car
