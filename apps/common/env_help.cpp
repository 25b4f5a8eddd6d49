// SPDX-License-Identifier: Apache-2.0
#include "common/env_help.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "common/info.hpp"

namespace car {
namespace {

struct Group {
  const char* key;
  const char* title;
};
constexpr Group kGroups[] = {{"system", "System configuration"},
                             {"debug", "Debugging: do not keep in production"}};

std::string wrap(const std::string& text, std::size_t width, const std::string& indent) {
  std::string wrapped;
  std::string line = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      wrapped += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return wrapped + line + "\n";
}

std::string text_of(const nlohmann::json& row, const char* key) {
  return row.at(key).get<std::string>();
}

std::string fallback_of(const nlohmann::json& row) {
  const std::string fallback = text_of(row, "default");
  return fallback.empty() ? "none" : fallback;
}

}  // namespace

std::string env_help_text() {
  std::string text =
      "Variables of librun. A field of librun_config_t, or a flag of a tool, overrules them.\n";
  for (const Group& group : kGroups) {
    text += fmt::format("\n{}:\n", group.title);
    for (const auto& row : settings()) {
      if (text_of(row, "group") != group.key) continue;
      text += fmt::format("  {}={} [{}]\n", text_of(row, "name"), text_of(row, "type"),
                          fallback_of(row));
      text += wrap(text_of(row, "doc"), 80, "      ");
    }
  }
  return text;
}

std::string env_help_markdown() {
  std::string text =
      "# Settings\n\n"
      "Written by `car_info --help-env=markdown`: change the table in "
      "`src/runtime/settings.cpp`, then run\n`scripts/update_env_md.sh`.\n\n"
      "A field of `librun_config_t`, or a flag of a tool, overrules the variable; the variable "
      "overrules the\ndefault. A bad value is an error that names it; an unknown `LIBRUN_*` "
      "variable earns one warning.\n";
  for (const Group& group : kGroups) {
    text += fmt::format(
        "\n## {}\n\n| variable | values | unit | default | what it does |\n"
        "|---|---|---|---|---|\n",
        group.title);
    for (const auto& row : settings()) {
      if (text_of(row, "group") != group.key) continue;
      std::string type;
      for (const char c : text_of(row, "type")) {
        if (c == '|') type.push_back('\\');
        type.push_back(c);
      }
      text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", text_of(row, "name"), type,
                          text_of(row, "unit"), fallback_of(row), text_of(row, "doc"));
    }
  }
  text.pop_back();
  return text;
}

std::string env_help(const std::string& format) {
  if (format == "text") return env_help_text();
  if (format == "markdown") return env_help_markdown();
  throw std::invalid_argument("--help-env is text or markdown, not \"" + format + "\"");
}

}  // namespace car
