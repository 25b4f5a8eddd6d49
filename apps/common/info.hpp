// SPDX-License-Identifier: Apache-2.0
// What a bug report should start with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace car {

/// The library's settings table: an array of objects, see librun_settings_json.
nlohmann::json settings();

/// Version, compiler, MPI, backends, limits, settings and checkpoint blockers.
nlohmann::json collect_info();
std::string info_text(const nlohmann::json& info);

/// "librun 0.1.0 (abc123)".
std::string version_text();

}  // namespace car
