// SPDX-License-Identifier: Apache-2.0
// NCCL as it is found at run time: the few functions that a benchmark calls, without its headers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "librun/types.h"

namespace car::bench {

/// What NCCL's ranks find each other by.
struct NcclId {
  char bytes[128];
};

/// Results are 0 for success; handles and streams are pointers.
class NcclLibrary {
 public:
  /// Null when libnccl.so.2 is not there, and then `why_not` says so.
  static std::unique_ptr<NcclLibrary> open(std::string& why_not);

  /// "2.28.3".
  std::string version_text() const;
  /// Memory windows of which all ranks hold the same part, since 2.27.
  bool has_windows() const { return mem_alloc && mem_free && window_register && window_deregister; }
  /// @throws std::runtime_error that names the call
  void check(int result, const char* call) const;

  int (*get_unique_id)(NcclId*) = nullptr;
  int (*comm_init_rank)(void** comm, int world, NcclId id, int rank) = nullptr;
  int (*comm_destroy)(void* comm) = nullptr;
  int (*all_reduce)(const void* send, void* recv, std::size_t count, int type, int op, void* comm,
                    void* stream) = nullptr;
  int (*mem_alloc)(void** memory, std::size_t size_bytes) = nullptr;
  int (*mem_free)(void* memory) = nullptr;
  int (*window_register)(void* comm, void* memory, std::size_t size_bytes, void** window,
                         int flags) = nullptr;
  int (*window_deregister)(void* comm, void* window) = nullptr;

 private:
  int (*get_version_)(int*) = nullptr;
  const char* (*get_error_string_)(int) = nullptr;
};

inline constexpr int kNcclSymmetricWindow = 1;

/// NCCL's numbers for types and operations.
int nccl_type(librun_dtype_t dtype);
int nccl_op(librun_op_t op);

}  // namespace car::bench
