// SPDX-License-Identifier: Apache-2.0
#include "runtime/env.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace librun {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> environment_names(const std::string& prefix) {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    if (text.compare(0, prefix.size(), prefix) == 0)
      names.push_back(text.substr(0, text.find('=')));
  }
  return names;
}

bool is_tool_variable(const std::string& name) {
  return name == "LIBRUN_ALLOW_SINGLETONS" || name.compare(0, 11, "LIBRUN_CAR_") == 0;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string json_quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace librun
