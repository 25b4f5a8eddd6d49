// SPDX-License-Identifier: Apache-2.0
// Which GPU a device is, whether it reaches another, and whether it can be checkpointed.
#pragma once

#include <string>
#include <vector>

namespace librun::cuda {

/// "GPU-xxxxxxxx-...", asked of the driver anew: a restore may move a process to another GPU.
/// @throws Error{cuda}
std::string device_uuid(int ordinal);
std::string device_name(int ordinal);
/// Whether memory of the device can be exported as file descriptors.
bool has_descriptors(int ordinal);
bool has_programmatic_launch(int ordinal);

/// @param uuid of a peer's GPU; one that is not visible here passes, and fails later when mapped
/// @throws Error{unsupported} when `ordinal` cannot reach it, or 16-byte lines might arrive in
/// parts
void check_reach(int ordinal, const std::string& uuid);

/// Why the driver cannot checkpoint a process that uses the device: MPS, or its own age.
/// @throws Error{unsupported} where there is no driver
std::vector<std::string> checkpoint_obstacles(int ordinal);

}  // namespace librun::cuda
