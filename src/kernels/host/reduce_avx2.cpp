// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/reduce_body.hpp"

namespace librun::host {
extern const ReduceTable kReduceAvx2 = kTable;
}  // namespace librun::host
