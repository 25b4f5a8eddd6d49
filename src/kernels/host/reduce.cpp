// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/reduce.hpp"

#include "librun/error.hpp"

namespace librun::host {

const ReduceTable& select_reduce_table(const std::string& isa) {
#if defined(LIBRUN_X86)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  if (avx512 && (isa == "auto" || isa == "avx512")) return kReduceAvx512;
  if (avx2 && (isa == "auto" || isa == "avx2")) return kReduceAvx2;
#endif
  if (isa == "auto" || isa == "plain") return kReducePlain;
  throw Error(LIBRUN_UNSUPPORTED, -1, "LIBRUN_ISA=" + isa + ": this processor does not have it.",
              "unset LIBRUN_ISA to take the best there is.");
}

}  // namespace librun::host
