// SPDX-License-Identifier: Apache-2.0
#include "car_bench/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

namespace car::bench {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<NcclLibrary> NcclLibrary::open(std::string& why_not) {
  // Never closed: it has threads of its own.
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    why_not = "libnccl.so.2 was not found: put its folder into LD_LIBRARY_PATH";
    return nullptr;
  }
  auto nccl = std::make_unique<NcclLibrary>();
  const bool whole = find(library, "ncclGetVersion", nccl->get_version_) &&
                     find(library, "ncclGetErrorString", nccl->get_error_string_) &&
                     find(library, "ncclGetUniqueId", nccl->get_unique_id) &&
                     find(library, "ncclCommInitRank", nccl->comm_init_rank) &&
                     find(library, "ncclCommDestroy", nccl->comm_destroy) &&
                     find(library, "ncclAllReduce", nccl->all_reduce);
  if (!whole) {
    why_not = "libnccl.so.2 lacks a function that every NCCL has";
    return nullptr;
  }
  find(library, "ncclMemAlloc", nccl->mem_alloc);
  find(library, "ncclMemFree", nccl->mem_free);
  find(library, "ncclCommWindowRegister", nccl->window_register);
  find(library, "ncclCommWindowDeregister", nccl->window_deregister);
  return nccl;
}

std::string NcclLibrary::version_text() const {
  int code = 0;
  get_version_(&code);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

void NcclLibrary::check(int result, const char* call) const {
  if (result != 0)
    throw std::runtime_error(fmt::format("{}: {} ({})", call, get_error_string_(result), result));
}

int nccl_type(librun_dtype_t dtype) {
  switch (dtype) {
    case LIBRUN_INT8:
      return 0;
    case LIBRUN_UINT8:
      return 1;
    case LIBRUN_INT32:
      return 2;
    case LIBRUN_UINT32:
      return 3;
    case LIBRUN_INT64:
      return 4;
    case LIBRUN_UINT64:
      return 5;
    case LIBRUN_FLOAT16:
      return 6;
    case LIBRUN_FLOAT32:
      return 7;
    case LIBRUN_FLOAT64:
      return 8;
    default:
      return 9;  // bfloat16
  }
}

int nccl_op(librun_op_t op) {
  static constexpr int kOps[] = {0, 1, 3, 2};  // NCCL has max before min
  return kOps[op];
}

}  // namespace car::bench
