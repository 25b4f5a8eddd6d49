// SPDX-License-Identifier: Apache-2.0
// The process environment, and words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace librun {

std::optional<std::string> environment_variable(const std::string& name);
/// Names that start with `prefix`.
std::vector<std::string> environment_names(const std::string& prefix);
/// True for a variable of the tools (car_bench and its kin) rather than of the library.
bool is_tool_variable(const std::string& name);
/// Insertions, deletions and replacements between two words.
std::size_t edit_distance(const std::string& a, const std::string& b);

/// `text` as a string of JSON.
std::string json_quote(const std::string& text);

}  // namespace librun
