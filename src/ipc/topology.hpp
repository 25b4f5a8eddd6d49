// SPDX-License-Identifier: Apache-2.0
// Which machine this is and which cores this process may use.
#pragma once

#include <sched.h>

#include <array>
#include <string>
#include <vector>

namespace librun::ipc {

/// Differs between machines and between boots, is equal in all containers of one machine.
/// @throws Error{system}
std::string boot_id();
std::string host_name();

/// The cores this process may run on.
cpu_set_t allowed_cores();

/// True when the ranks outnumber the cores that they may use together, or two ranks are bound to
/// fewer cores than they are: then a waiting rank must give way at once.
bool ranks_share_cores(const std::vector<cpu_set_t>& allowed);

}  // namespace librun::ipc
