// SPDX-License-Identifier: Apache-2.0
// How the tools end.
#pragma once

#include "librun/types.h"

namespace car {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;      ///< wrong results, or below a threshold
inline constexpr int kExitUsage = 2;        ///< the command line
inline constexpr int kExitEnvironment = 3;  ///< no such device, ranks on several hosts, full disk
inline constexpr int kExitTimeout = 4;      ///< a hang or a deadline
inline constexpr int kExitSkip = 77;        ///< not run

/// For an error of the library that ends a tool.
constexpr int exit_code_of(librun_status_t status) {
  return status == LIBRUN_TIMEOUT ? kExitTimeout : kExitEnvironment;
}

}  // namespace car
