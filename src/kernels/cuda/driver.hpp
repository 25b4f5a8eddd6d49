// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver, found at run time: a program that links librun starts on
// machines without a driver.
#pragma once

#include <cuda.h>

#include <string>

namespace librun::cuda {

struct Driver {
  decltype(&cuGetErrorName) get_error_name;
  decltype(&cuGetErrorString) get_error_string;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetUuid) device_get_uuid;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuPointerGetAttribute) pointer_get_attribute;
  decltype(&cuMemGetAllocationGranularity) mem_get_allocation_granularity;
  decltype(&cuMemAddressReserve) mem_address_reserve;
  decltype(&cuMemAddressFree) mem_address_free;
  decltype(&cuMemCreate) mem_create;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemMap) mem_map;
  decltype(&cuMemUnmap) mem_unmap;
  decltype(&cuMemSetAccess) mem_set_access;
  decltype(&cuMemExportToShareableHandle) mem_export_to_shareable_handle;
  decltype(&cuMemImportFromShareableHandle) mem_import_from_shareable_handle;
  // Null where the driver has none.
  decltype(&cuDriverGetVersion) driver_get_version;
  void* checkpoint_process_lock;  ///< tells that there are checkpoints; librun does not make them
};

/// Loaded once. Thread-safe. @throws Error{unsupported} naming the function that is missing
const Driver& driver();

/// Puts another table in its place while it lives. Not thread-safe.
class DriverForTest {
 public:
  explicit DriverForTest(const Driver& table);
  ~DriverForTest();
  DriverForTest(const DriverForTest&) = delete;
  DriverForTest& operator=(const DriverForTest&) = delete;
};

/// "cuMemCreate: out of memory, 2".
std::string driver_text(const char* call, CUresult result);

/// @throws Error{cuda}
void check_driver(CUresult result, const char* call, const std::string& what,
                  const char* hint = "");

}  // namespace librun::cuda
