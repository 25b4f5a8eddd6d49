// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver.hpp"

#include <cuda_runtime_api.h>

#include "librun/error.hpp"

namespace librun::cuda {
namespace {

/// The functions are those of CUDA 12.0, but for checkpoints.
constexpr unsigned kDriverVersion = 12000;
constexpr unsigned kCheckpointVersion = 12080;

void* find(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) return found;
  static_cast<void>(cudaGetLastError());
  return nullptr;
}

template <class Function>
void load(const char* name, Function& function) {
  void* const found = find(name, kDriverVersion);
  if (!found)
    throw Error(LIBRUN_UNSUPPORTED, -1, std::string("the CUDA driver has no ") + name + ".",
                "librun needs a driver for CUDA 12.0 or later.");
  function = reinterpret_cast<Function>(found);
}

Driver load_all() {
  Driver table{};
  load("cuGetErrorName", table.get_error_name);
  load("cuGetErrorString", table.get_error_string);
  load("cuDeviceGet", table.device_get);
  load("cuDeviceGetUuid", table.device_get_uuid);
  load("cuDeviceGetAttribute", table.device_get_attribute);
  load("cuPointerGetAttribute", table.pointer_get_attribute);
  load("cuMemGetAllocationGranularity", table.mem_get_allocation_granularity);
  load("cuMemAddressReserve", table.mem_address_reserve);
  load("cuMemAddressFree", table.mem_address_free);
  load("cuMemCreate", table.mem_create);
  load("cuMemRelease", table.mem_release);
  load("cuMemMap", table.mem_map);
  load("cuMemUnmap", table.mem_unmap);
  load("cuMemSetAccess", table.mem_set_access);
  load("cuMemExportToShareableHandle", table.mem_export_to_shareable_handle);
  load("cuMemImportFromShareableHandle", table.mem_import_from_shareable_handle);
  table.driver_get_version =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(find("cuDriverGetVersion", kDriverVersion));
  table.checkpoint_process_lock = find("cuCheckpointProcessLock", kCheckpointVersion);
  return table;
}

const Driver* replaced = nullptr;

}  // namespace

DriverForTest::DriverForTest(const Driver& table) { replaced = &table; }
DriverForTest::~DriverForTest() { replaced = nullptr; }

const Driver& driver() {
  if (replaced) return *replaced;
  static const Driver table = load_all();
  return table;
}

std::string driver_text(const char* call, CUresult result) {
  const char* text = nullptr;
  if (driver().get_error_string(result, &text) != CUDA_SUCCESS || !text) text = "unknown error";
  return std::string(call) + ": " + text + ", " + std::to_string(result);
}

void check_driver(CUresult result, const char* call, const std::string& what, const char* hint) {
  if (result != CUDA_SUCCESS)
    throw Error(LIBRUN_CUDA, -1, what + " (" + driver_text(call, result) + ").", hint);
}

}  // namespace librun::cuda
