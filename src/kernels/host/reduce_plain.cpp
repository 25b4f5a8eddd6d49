// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/reduce_body.hpp"

namespace librun::host {
extern const ReduceTable kReducePlain = kTable;
}  // namespace librun::host
