// SPDX-License-Identifier: Apache-2.0
#include "car_bench/tuning_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "librun/librun.h"

namespace car::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "librun.tuning/1";

ordered_json table_json(const TunedTable& table) {
  ordered_json json{{"device", table.device}, {"shared", table.shared}, {"world", table.world}};
  if (table.element_bytes != 0) json["element_bytes"] = table.element_bytes;
  json["registered"] = table.registered;
  json["made"] = table.made;
  for (const FittedStep& step : table.steps) {
    ordered_json entry;
    if (step.up_to_bytes) entry["up_to_bytes"] = *step.up_to_bytes;
    entry["algo"] = librun_algo_name(step.algo);
    json["steps"].push_back(entry);
  }
  return json;
}

/// What a table is for, without what it says.
ordered_json purpose_of(ordered_json table) {
  table.erase("steps");
  table.erase("made");
  return table;
}

bool is_tuning(const ordered_json& root) {
  return root.is_object() && root.value("schema", ordered_json()) == kSchema &&
         root.contains("tables") && root["tables"].is_array();
}

}  // namespace

std::string read_tuning(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path);
  if (!file.is_open()) throw std::runtime_error("cannot read " + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!is_tuning(ordered_json::parse(text, nullptr, false)))
    throw std::runtime_error(path +
                             " holds something else than tables of --tune: name another file");
  return text;
}

std::string with_tables(const std::string& old_text, const std::vector<TunedTable>& tables) {
  std::vector<ordered_json> all;
  for (const TunedTable& table : tables) all.push_back(table_json(table));
  const std::vector<ordered_json> fresh = all;
  const auto is_replaced = [&](const ordered_json& old) {
    return std::any_of(fresh.begin(), fresh.end(), [&](const ordered_json& table) {
      return purpose_of(table) == purpose_of(old);
    });
  };
  if (!old_text.empty()) {
    const ordered_json old = ordered_json::parse(old_text);
    std::remove_copy_if(old["tables"].begin(), old["tables"].end(), std::back_inserter(all),
                        is_replaced);
  }
  return ordered_json{{"schema", kSchema}, {"tables", all}}.dump(2) + "\n";
}

}  // namespace car::bench
