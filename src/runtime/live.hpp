// SPDX-License-Identifier: Apache-2.0
// The communicators of this process, in order of creation.
#pragma once

#include <memory>
#include <vector>

namespace librun {

class Communicator;

/// Thread-safe.
void add_live(const std::shared_ptr<Communicator>& communicator);
std::vector<std::shared_ptr<Communicator>> live_communicators();

}  // namespace librun
