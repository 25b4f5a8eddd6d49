// SPDX-License-Identifier: Apache-2.0
// The memory of a CUDA device over a driver that is made up: each call fails once, and nothing may
// stay behind.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <set>

#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/memory.hpp"
#include "librun/error.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

/// What the driver would hold, and which of its calls fails.
struct FakeDriver {
  std::set<CUmemGenericAllocationHandle> handles;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
  CUmemGenericAllocationHandle next_handle = 1;
  CUdeviceptr next_address = kGranularity;
  int calls = 0;
  int failing = -1;  ///< the number of the call that fails

  bool fails() { return calls++ == failing; }
  bool empty() const { return handles.empty() && reserved.empty() && mapped.empty(); }
};
FakeDriver fake;

CUresult error_string(CUresult, const char** text) {
  *text = "made up";
  return CUDA_SUCCESS;
}
CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  if (fake.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = fake.next_address;
  fake.next_address += bytes;
  fake.reserved[*address] = bytes;
  return CUDA_SUCCESS;
}
CUresult free_address(CUdeviceptr address, size_t bytes) {
  CHECK(fake.reserved.at(address) == bytes);
  CHECK(fake.mapped.count(address) == 0);
  fake.reserved.erase(address);
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                unsigned long long) {
  if (fake.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(bytes % kGranularity == 0);
  *handle = fake.next_handle++;
  fake.handles.insert(*handle);
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle handle) {
  CHECK(fake.handles.erase(handle) == 1);
  return CUDA_SUCCESS;
}
CUresult map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  if (fake.fails()) return CUDA_ERROR_INVALID_VALUE;
  CHECK(fake.reserved.at(address) >= bytes);
  CHECK(fake.handles.count(handle) == 1);
  CHECK(fake.mapped.emplace(address, handle).second);
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr address, size_t) {
  CHECK(fake.mapped.erase(address) == 1);
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return fake.fails() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult export_handle(void* fd, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                       unsigned long long) {
  if (fake.fails()) return CUDA_ERROR_UNKNOWN;
  CHECK(fake.handles.count(handle) == 1);
  const int file = ::memfd_create("made up", MFD_CLOEXEC);
  std::memcpy(fd, &file, sizeof(file));
  return CUDA_SUCCESS;
}
CUresult import_handle(CUmemGenericAllocationHandle* handle, void*, CUmemAllocationHandleType) {
  if (fake.fails()) return CUDA_ERROR_INVALID_VALUE;
  *handle = fake.next_handle++;
  fake.handles.insert(*handle);
  return CUDA_SUCCESS;
}

cuda::Driver fake_table() {
  cuda::Driver table{};
  table.get_error_string = error_string;
  table.mem_get_allocation_granularity = granularity;
  table.mem_address_reserve = reserve;
  table.mem_address_free = free_address;
  table.mem_create = create;
  table.mem_release = release;
  table.mem_map = map;
  table.mem_unmap = unmap;
  table.mem_set_access = set_access;
  table.mem_export_to_shareable_handle = export_handle;
  table.mem_import_from_shareable_handle = import_handle;
  return table;
}

/// What one communicator does with its pool. @return how many calls of the driver it made
int live(int failing) {
  fake = FakeDriver{};
  fake.failing = failing;
  {
    cuda::DeviceMemoryPool pool(0, false);
    std::byte* arena = pool.commit_exportable(nullptr, 100);
    const Exported exported = pool.export_memory(arena);
    CHECK(exported.fd);
    std::byte* peer = pool.map(exported, 100);
    CHECK(peer != arena);
    // Suspend: the memory goes, the address stays.
    CHECK(pool.release(peer, false) == 0);
    CHECK(pool.release(arena, true) == 0);
    CHECK(fake.handles.empty());
    CHECK(fake.mapped.empty());
    CHECK(fake.reserved.size() == 1);
    // Resume: fresh memory at the address that graphs know.
    const std::byte* again = pool.commit_exportable(arena, 100);
    CHECK(again == arena);
    CHECK(fake.mapped.size() == 1);
  }
  return fake.calls;
}

}  // namespace

TEST_CASE("device memory comes back at its address, and all of it is given back") {
  const cuda::Driver table = fake_table();
  const cuda::DriverForTest replaced(table);
  CHECK(live(-1) > 0);
  CHECK(fake.empty());
}

TEST_CASE("whichever call of the driver fails, it is named and nothing stays") {
  const cuda::Driver table = fake_table();
  const cuda::DriverForTest replaced(table);
  const int calls = live(-1);
  for (int failing = 0; failing < calls; ++failing) {
    CAPTURE(failing);
    try {
      live(failing);
      FAIL("the call that fails must be told");
    } catch (const Error& error) {
      CHECK(error.code() == LIBRUN_CUDA);
      CHECK(std::string(error.what()).find("made up") != std::string::npos);
    }
    CHECK(fake.empty());
  }
}
