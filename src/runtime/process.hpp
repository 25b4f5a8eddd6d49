// SPDX-License-Identifier: Apache-2.0
// Tells a forked child from the process that created a communicator.
#pragma once

#include <cstdint>

namespace librun {

/// Differs in a child of fork; costs one load.
std::uint64_t process_instance();

}  // namespace librun
