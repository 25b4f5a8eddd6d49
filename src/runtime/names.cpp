// SPDX-License-Identifier: Apache-2.0
// Names of the constants of the C API.
#include "kernels/dtype.hpp"
#include "librun/librun.h"

namespace {

template <std::size_t N>
const char* name_at(const char* const (&names)[N], int index) {
  return index >= 0 && index < static_cast<int>(N) ? names[index] : nullptr;
}

}  // namespace

extern "C" {

const char* librun_status_string(librun_status_t status) {
  static const char* const kNames[] = {
      "ok",      "already there", "rejected",    "invalid argument", "invalid state", "failed",
      "timeout", "peer lost",     "unsupported", "system error",     "CUDA error",    "MPI error"};
  const char* name = name_at(kNames, status);
  return name ? name : "unknown status";
}

const char* librun_dtype_name(librun_dtype_t dtype) {
  static const char* const kNames[] = {"float16", "bfloat16", "float32", "float64", "int8",
                                       "uint8",   "int32",    "uint32",  "int64",   "uint64"};
  return name_at(kNames, dtype);
}

const char* librun_op_name(librun_op_t op) {
  static const char* const kNames[] = {"sum", "prod", "min", "max"};
  return name_at(kNames, op);
}

const char* librun_algo_name(librun_algo_t algo) {
  static const char* const kNames[] = {"auto",     "ll",        "one_shot",
                                       "two_shot", "zero_copy", "stepped"};
  return name_at(kNames, algo);
}

const char* librun_state_name(librun_state_t state) {
  static const char* const kNames[] = {"active", "suspended", "failed", "closed"};
  return name_at(kNames, state);
}

size_t librun_dtype_bytes(librun_dtype_t dtype) { return librun::element_bytes(dtype); }

librun_status_t librun_version(int* out) {
  if (!out) return LIBRUN_INVALID_ARGUMENT;
  *out = LIBRUN_VERSION_CODE;
  return LIBRUN_OK;
}

}  // extern "C"
