// SPDX-License-Identifier: Apache-2.0
// The library's settings for people: --help-env and docs/env.md.
#pragma once

#include <string>

namespace car {

std::string env_help_text();
std::string env_help_markdown();
/// `format` is "text" or "markdown". @throws std::invalid_argument
std::string env_help(const std::string& format);

}  // namespace car
