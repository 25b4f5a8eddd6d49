// SPDX-License-Identifier: Apache-2.0
#include "car_bench/tuning_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/json_file.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kSchema = "librun.tuning/1";

ordered_json table_json(const TunedTable& table) {
  ordered_json result{{"device", table.device}, {"shared", table.shared}, {"world", table.world}};
  if (table.element_bytes != 0) result["element_bytes"] = table.element_bytes;
  result["registered"] = table.registered;
  if (table.from_bytes != 0) result["from_bytes"] = table.from_bytes;
  result["made"] = table.made;
  for (const FittedStep& step : table.steps) {
    result["steps"].push_back(
        {{"up_to_bytes", step.up_to_bytes}, {"algo", librun_algo_name(step.algo)}});
  }
  return result;
}

/// What a table is for, without what it says; the order of its members does not matter.
json purpose_of(const ordered_json& table) {
  json purpose = table;
  for (const char* name : {"steps", "made", "from_bytes"}) purpose.erase(name);
  return purpose;
}

std::uint64_t end_of(const ordered_json& table) {
  return table["steps"].back().value("up_to_bytes", std::numeric_limits<std::uint64_t>::max());
}

bool replaces(const ordered_json& fresh, const ordered_json& old) {
  return purpose_of(fresh) == purpose_of(old) && end_of(fresh) >= end_of(old) &&
         fresh.value("from_bytes", std::uint64_t{0}) <= old.value("from_bytes", std::uint64_t{0});
}

/// Asks the library, whose rules these are.
bool is_taken(const std::string& path) {
  ::setenv("LIBRUN_TUNING", path.c_str(), 1);
  std::size_t needed = 0;
  std::string text;
  if (librun_settings_json(nullptr, 0, &needed) == LIBRUN_OK) {
    text.resize(needed);
    librun_settings_json(text.data(), text.size(), nullptr);
  }
  ::unsetenv("LIBRUN_TUNING");
  for (const json& setting : json::parse(text.c_str(), nullptr, false))
    if (setting.is_object() && setting.value("name", "") == "LIBRUN_TUNING")
      return setting.value("valid", false);
  return false;
}

}  // namespace

std::string read_tuning(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  if (!std::filesystem::is_regular_file(path, error))
    throw std::runtime_error(path + " is no plain file: --tune needs one");
  if (std::filesystem::file_size(path, error) == 0 && !error) return "";
  if (!is_taken(path))
    throw std::runtime_error(path +
                             " holds something else than tables of --tune: name another file");
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string with_tables(const std::string& old_text, const std::vector<TunedTable>& tables) {
  std::vector<ordered_json> all;
  for (const TunedTable& table : tables) all.push_back(table_json(table));
  ordered_json root{{"schema", kSchema}};
  if (!old_text.empty()) {
    root = ordered_json::parse(old_text);
    const std::vector<ordered_json> fresh = all;
    for (const ordered_json& old : root["tables"])
      if (std::none_of(fresh.begin(), fresh.end(),
                       [&](const ordered_json& table) { return replaces(table, old); }))
        all.push_back(old);
  }
  root["tables"] = all;
  return root.dump(2) + "\n";
}

void add_tables(const std::string& path, const std::vector<TunedTable>& tables) {
  const std::string text = with_tables(read_tuning(path), tables);
  const std::string trial = fmt::format("{}.{}.trial", path, ::getpid());
  write_json(trial, text);
  const bool good = is_taken(trial);
  std::remove(trial.c_str());
  if (!good)
    throw std::runtime_error(path +
                             " would become too large or too fine for librun: name another file");
  write_json(path, text);
}

}  // namespace car::bench
