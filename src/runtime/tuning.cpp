// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "librun/error.hpp"
#include "librun/librun.h"
#include "runtime/shipped_tuning.hpp"

namespace librun {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "librun.tuning/1";
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxSteps = 64;

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// A value, and where it is: what is wrong with it can be told.
class Place {
 public:
  Place(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(LIBRUN_INVALID_ARGUMENT, -1, path_ + " " + why + ".",
                "car_bench --tune= writes such files; docs/perf.md tells what they hold.");
  }

  std::size_t size() const {
    if (!value_.is_array()) refuse("is no array");
    return value_.size();
  }
  Place at(std::size_t index) const { return {value_[index], fmt::format("{}[{}]", path_, index)}; }
  bool has(const char* name) const {
    if (!value_.is_object()) refuse("is no object");
    return value_.contains(name);
  }
  Place member(const char* name) const {
    if (!has(name)) refuse(fmt::format("has no \"{}\"", name));
    const bool root = path_.back() == ':';
    return {value_[name], fmt::format("{}{}{}", path_, root ? ' ' : '.', name)};
  }
  void check_names(std::initializer_list<const char*> known) const {
    if (!value_.is_object()) refuse("is no object");
    for (const auto& [name, ignored] : value_.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        refuse(fmt::format("has an unknown \"{}\"", name));
  }

  std::string text() const {
    if (!value_.is_string()) refuse("is no text");
    return value_.get<std::string>();
  }
  bool truth() const {
    if (!value_.is_boolean()) refuse("is neither true nor false");
    return value_.get<bool>();
  }
  std::uint64_t number(std::uint64_t low, std::uint64_t high) const {
    const bool fits = value_.is_number_unsigned() && value_.get<std::uint64_t>() >= low &&
                      value_.get<std::uint64_t>() <= high;
    if (!fits)  // only a number is written out: what is nested may be too deep for that
      refuse(fmt::format("is {}, no whole number of {} to {}",
                         value_.is_number() ? value_.dump() : value_.type_name(), low, high));
    return value_.get<std::uint64_t>();
  }
  bool is_array() const { return value_.is_array(); }

 private:
  const json& value_;
  std::string path_;
};

librun_algo_t algo_at(const Place& place, bool registered) {
  for (const librun_algo_t algo :
       {LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_ZERO_COPY})
    if (place.text() == librun_algo_name(algo)) {
      if (algo == LIBRUN_ALGO_ZERO_COPY && !registered)
        place.refuse("is zero_copy, in a table that is not for \"registered\": true");
      return algo;
    }
  place.refuse(fmt::format("is \"{}\", not ll, one_shot, two_shot or zero_copy", place.text()));
}

TuningSteps steps_at(const Place& place, bool registered) {
  TuningSteps steps;
  const std::size_t n_steps = place.size();
  if (n_steps == 0 || n_steps > kMaxSteps)
    place.refuse(fmt::format("has {} steps; it takes 1 to {}", n_steps, kMaxSteps));
  for (std::size_t i = 0; i < n_steps; ++i) {
    const Place step = place.at(i);
    step.check_names({"algo", "up_to_bytes"});
    const bool open_ended = i + 1 == n_steps && !step.has("up_to_bytes");
    const std::uint64_t least = i == 0 ? 1 : steps.back().up_to_bytes + 1;
    const std::uint64_t up_to =
        open_ended ? std::numeric_limits<std::size_t>::max()
                   : step.member("up_to_bytes").number(least, std::uint64_t{1} << 43);
    steps.push_back({up_to, algo_at(step.member("algo"), registered)});
  }
  return steps;
}

TuningTable table_at(const Place& place) {
  place.check_names(
      {"device", "shared", "world", "element_bytes", "registered", "from_bytes", "steps", "made"});
  TuningTable table;
  table.device = place.member("device").text();
  if (place.has("made")) place.member("made").text();
  if (table.device.empty()) place.member("device").refuse("is empty");
  if (place.has("shared")) table.shared = place.member("shared").truth();
  if (place.has("registered")) table.registered = place.member("registered").truth();
  if (place.has("world")) {
    const Place world = place.member("world");
    const auto count = [](const Place& at) {
      return static_cast<int>(at.number(1, LIBRUN_MAX_WORLD));
    };
    if (world.is_array() && world.size() != 2)
      world.refuse("takes a number, or the first and last");
    table.min_world = world.is_array() ? count(world.at(0)) : count(world);
    table.max_world = world.is_array() ? count(world.at(1)) : table.min_world;
    if (table.max_world < table.min_world) world.refuse("ends before it begins");
  }
  if (place.has("element_bytes")) {
    table.element_bytes = place.member("element_bytes").number(1, 8);
    if ((table.element_bytes & (table.element_bytes - 1)) != 0)
      place.member("element_bytes").refuse("is not 1, 2, 4 or 8");
  }
  if (place.has("from_bytes"))
    table.from_bytes = place.member("from_bytes").number(0, std::uint64_t{1} << 43);
  table.steps = steps_at(place.member("steps"), table.registered.value_or(false));
  return table;
}

}  // namespace

bool TuningTable::is_for(const TuningKey& key) const {
  const bool any_gpu = device == "cuda" && key.kind == LIBRUN_DEVICE_CUDA;
  return (any_gpu || key.device.rfind(device, 0) == 0) && (!shared || *shared == key.shared) &&
         key.world >= min_world && key.world <= max_world &&
         (element_bytes == 0 || element_bytes == key.element_bytes) &&
         (!registered || *registered == key.registered);
}

std::optional<librun_algo_t> TuningTable::algo_for(std::size_t size_bytes) const {
  if (size_bytes < from_bytes) return std::nullopt;
  for (const TuningStep& step : steps)
    if (size_bytes <= step.up_to_bytes) return step.algo;
  return std::nullopt;
}

const TuningTables& TuningTables::shipped() {
  static const TuningTables tables = parse(kShippedTuning, "the tables of librun");
  return tables;
}

TuningTables TuningTables::parse(const std::string& text, const std::string& origin) {
  const json root = json::parse(text, nullptr, false);
  const Place place(root, origin + ":");
  if (root.is_discarded()) place.refuse("is no JSON");
  place.check_names({"schema", "tables", "comment"});
  if (place.has("comment")) place.member("comment").text();
  if (place.member("schema").text() != kSchema)
    place.member("schema").refuse(fmt::format("is not \"{}\"", kSchema));
  TuningTables result;
  const Place tables = place.member("tables");
  for (std::size_t i = 0; i < tables.size(); ++i) result.tables_.push_back(table_at(tables.at(i)));
  result.digest_ = fnv1a(text);
  return result;
}

TuningTables TuningTables::read(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(LIBRUN_INVALID_ARGUMENT, -1,
                fmt::format("LIBRUN_TUNING: cannot read \"{}\" in {}: {}.", path,
                            std::filesystem::current_path().string(), why),
                "name a file that car_bench --tune= has written, best by its whole path.");
  };
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (error) refuse(error.message());
  // A pipe would keep us waiting.
  if (type != std::filesystem::file_type::regular) refuse("it is no plain file");
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) refuse(std::strerror(errno));
  std::string text(kMaxTextBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) refuse("it holds more than 1 MiB");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse(text, "LIBRUN_TUNING: " + path);
}

std::vector<const TuningTable*> TuningTables::fitting(const TuningKey& key) const {
  std::vector<const TuningTable*> found;
  for (const TuningTable& table : tables_)
    if (table.is_for(key)) found.push_back(&table);
  return found;
}

}  // namespace librun
