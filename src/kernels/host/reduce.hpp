// SPDX-License-Identifier: Apache-2.0
// Reductions over n sources in rank order, one table of functions for each instruction set.
#pragma once

#include <cstddef>
#include <string>

#include "librun/types.h"

namespace librun::host {

/// dst[i] = sources[0][i] op sources[1][i] op ...; 16-bit floats are accumulated in fp32 and
/// rounded once. dst may be one of the sources. No alignment is needed.
using ReduceFn = void (*)(void* dst, const void* const* sources, int n_sources, std::size_t count);

struct ReduceTable {
  ReduceFn fn[LIBRUN_DTYPE_COUNT][LIBRUN_OP_COUNT];
};

extern const ReduceTable kReducePlain;
#if defined(LIBRUN_X86)
extern const ReduceTable kReduceAvx2;
extern const ReduceTable kReduceAvx512;
#endif

/// @param isa "auto": the best that this processor has. @throws Error{unsupported} for one it lacks
const ReduceTable& select_reduce_table(const std::string& isa);

}  // namespace librun::host
