// SPDX-License-Identifier: Apache-2.0
// Result files that are whole or not there.
#pragma once

#include <string>

namespace car {

/// Writes `text` under a temporary name beside `path` and renames it; "-" is standard output.
/// @throws std::runtime_error naming the path and the cause
void write_json(const std::string& path, const std::string& text);

/// Finds out before a long run whether write_json will be able to. @throws std::runtime_error
void check_writable(const std::string& path);

}  // namespace car
