// SPDX-License-Identifier: Apache-2.0
// The library's one voice: a private logger, never the global registry of the host program.
#pragma once

#include <string>

namespace librun::log {

enum class Level { error, warn, info, debug };

/// Sets the logger up from LIBRUN_LOG* on the first call. @throws Error{invalid_argument, system}
void open(int rank, int world);

void write(Level level, const std::string& text) noexcept;
bool enabled(Level level) noexcept;

}  // namespace librun::log
