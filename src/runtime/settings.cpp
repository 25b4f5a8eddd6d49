// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "kernels/arena.hpp"
#include "kernels/fault.hpp"
#include "librun/error.hpp"
#include "librun/librun.h"
#include "runtime/env.hpp"

namespace librun {
namespace {

constexpr std::size_t kMaxArenaBytes = std::size_t{1} << 32;
constexpr long kMaxTimeoutMs = 7L * 24 * 3600 * 1000;

/// A whole number with an optional binary suffix K, M or G.
std::optional<std::uint64_t> to_bytes(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{}) return std::nullopt;
  if (rest == end) return value;
  const auto unit = std::string("KMG").find(*rest);
  if (unit == std::string::npos || rest + 1 != end) return std::nullopt;
  const std::uint64_t scale = std::uint64_t{1} << (10 * (unit + 1));
  if (value > std::numeric_limits<std::uint64_t>::max() / scale) return std::nullopt;
  return value * scale;
}

template <class... Words>
bool one_of(const std::string& value, Words... words) {
  return ((value == words) || ...);
}

bool is_switch(const std::string& value) { return one_of(value, "0", "1"); }
bool is_any(const std::string&) { return true; }
bool is_timeout(const std::string& value) {
  const auto number = to_bytes(value);
  return number && std::isdigit(static_cast<unsigned char>(value.back())) && *number >= 1 &&
         *number <= static_cast<std::uint64_t>(kMaxTimeoutMs);
}
bool is_arena(const std::string& value) {
  if (value == "auto") return true;
  const auto number = to_bytes(value);
  return number && *number >= kMinArenaBytes && *number <= kMaxArenaBytes;
}
bool is_algo(const std::string& value) {
  for (int algo = 0; algo < LIBRUN_ALGO_COUNT; ++algo)
    if (value == librun_algo_name(static_cast<librun_algo_t>(algo))) return true;
  return false;
}
bool is_device(const std::string& value) { return one_of(value, "auto", "host", "cuda"); }
bool is_ipc(const std::string& value) { return one_of(value, "auto", "descriptor", "legacy"); }
bool is_isa(const std::string& value) { return one_of(value, "auto", "avx512", "avx2", "plain"); }
bool is_spin(const std::string& value) { return one_of(value, "auto", "spin", "yield"); }
bool is_level(const std::string& value) {
  return one_of(value, "off", "error", "warn", "info", "debug", "trace");
}
bool is_blocks(const std::string& value) {
  if (value == "auto") return true;
  const auto number = to_bytes(value);
  return number && std::isdigit(static_cast<unsigned char>(value.back())) && *number >= 1 &&
         *number <= 1024;
}
bool is_tuning(const std::string& value) {
  if (value.empty()) return true;
  try {
    TuningTables::read(value);
    return true;
  } catch (const Error&) {
    return false;
  }
}
bool is_log_ranks(const std::string& value) { return one_of(value, "0", "all"); }
bool is_fault(const std::string& value) {
  try {
    fault::parse(value);
    return true;
  } catch (const Error&) {
    return false;
  }
}

constexpr std::array kRows = {
    SettingRow{"LIBRUN_DEVICE", "auto|host|cuda", "", "auto", "system",
               "Where the data is. auto takes CUDA when this build and machine have it.",
               is_device},
    SettingRow{"LIBRUN_ALGO", "auto|ll|one_shot|two_shot|zero_copy|stepped", "", "auto", "system",
               "Forces one algorithm; auto chooses for each call by its size.", is_algo},
    SettingRow{"LIBRUN_TIMEOUT_MS", "1..604800000", "ms", "30000", "system",
               "Deadline of create, suspend, resume, register and close.", is_timeout},
    SettingRow{"LIBRUN_CALL_TIMEOUT_MS", "1..604800000", "ms", "600000", "system",
               "How long an all-reduce waits for a late rank. Follows LIBRUN_TIMEOUT_MS when only "
               "that is set. A dead rank is noticed at once, whatever this says.",
               is_timeout},
    SettingRow{"LIBRUN_ARENA_BYTES", "auto|64K..4G", "bytes", "auto", "system",
               "Shared memory of each rank. Binary suffixes K, M and G. auto: 2M on the host with "
               "2 ranks, less with more, 64M "
               "on CUDA, which takes 2M at least.",
               is_arena},
    SettingRow{
        "LIBRUN_IPC", "auto|descriptor|legacy", "", "auto", "system",
        "How ranks map each other's GPU memory: by file descriptors, or by the driver's older "
        "handles. auto takes descriptors where the driver has them.",
        is_ipc},
    SettingRow{
        "LIBRUN_PROGRAMMATIC_LAUNCH", "0|1", "", "1", "system",
        "Let a launch start while the one in front of it ends, on GPUs that can (Hopper up).",
        is_switch},
    SettingRow{"LIBRUN_MAX_BLOCKS", "auto|1..1024", "blocks", "auto", "system",
               "Most thread blocks of a launch on a GPU: what an all-reduce may take from the rest "
               "of the program. auto, and at most: 128, divided by the ranks that share the GPU.",
               is_blocks},
    SettingRow{
        "LIBRUN_TUNING", "path", "", "", "system",
        "A file of car_bench --tune=: tables of the fastest algorithm by size, asked before those "
        "of librun. The same on all ranks; must be readable. LIBRUN_ALGO overrules it. See "
        "docs/perf.md.",
        is_tuning},
    SettingRow{"LIBRUN_SPIN", "auto|spin|yield", "", "auto", "system",
               "How a rank waits: spin for some microseconds, or yield the core at once. auto "
               "yields when ranks share cores.",
               is_spin},
    SettingRow{"LIBRUN_SELFTEST", "0|1", "", "1", "system",
               "Run one small sum per algorithm when a communicator is created.", is_switch},
    SettingRow{"LIBRUN_LOG", "off|error|warn|info|debug|trace", "", "warn", "system",
               "How much the library logs, to standard error.", is_level},
    SettingRow{"LIBRUN_LOG_FILE", "path", "", "", "system",
               "Log to this file instead; %r is the rank, %h the host, %p the process.", is_any},
    SettingRow{"LIBRUN_LOG_RANKS", "0|all", "", "0", "system",
               "all: every rank logs below warn too, not only rank 0.", is_log_ranks},
    SettingRow{
        "LIBRUN_JOB", "name", "", "", "system",
        "Which job this process belongs to, for car_checkpoint --job. Unset: what Slurm, PMIx "
        "or Open MPI calls it.",
        is_any},
    SettingRow{"LIBRUN_CHECK", "0|1", "", "0", "debug",
               "Compare count, type, op and algorithm of every call across the ranks.", is_switch},
    SettingRow{
        "LIBRUN_BAKED_POINTERS", "0|1", "", "0", "debug",
        "For measuring what the table costs, read by librun_graph_begin: what is captured on a GPU "
        "holds the peers' pointers, for float sums only. The communicator can then no longer be "
        "suspended.",
        is_switch},
    SettingRow{"LIBRUN_ISA", "auto|avx512|avx2|plain", "", "auto", "debug",
               "Instruction set of the reductions; the results are the same.", is_isa},
    SettingRow{"LIBRUN_FAULT", "<point>@<rank>[#<nth>]:<action>", "", "", "debug",
               "Faults to inject (delay=<ms>, fail, die, stop, corrupt); only in test builds.",
               is_fault},
};

const SettingRow& row_of(const std::string& name) {
  return *std::find_if(kRows.begin(), kRows.end(),
                       [&](const SettingRow& row) { return name == row.name; });
}

template <class Enum>
Enum parse_enum(const std::string& name, std::initializer_list<std::pair<const char*, Enum>> map) {
  const std::string value = setting_value(name);
  for (const auto& [word, result] : map)
    if (value == word) return result;
  return map.begin()->second;
}

[[noreturn]] void reject_field(const char* field, const std::string& value, const char* accepted) {
  throw Error(LIBRUN_INVALID_ARGUMENT, -1,
              std::string("librun_config_t.") + field + " is " + value + ".",
              std::string("it takes ") + accepted + ".");
}

}  // namespace

std::span<const SettingRow> setting_rows() { return kRows; }

bool setting_from_environment(const std::string& name) {
  return environment_variable(name).has_value();
}

std::string setting_value(const std::string& name) {
  const SettingRow& row = row_of(name);
  const auto value = environment_variable(name);
  if (!value || value->empty()) return row.fallback;
  if (!row.valid(*value)) {
    if (name == "LIBRUN_FAULT") fault::parse(*value);
    if (name == "LIBRUN_TUNING") TuningTables::read(*value);
    throw Error(LIBRUN_INVALID_ARGUMENT, -1, name + " is \"" + *value + "\".",
                "it takes " + std::string(row.type) + (*row.unit ? " " : "") + row.unit + ".");
  }
  return *value;
}

std::string unknown_variables() {
  std::string sentences;
  for (const std::string& name : environment_names("LIBRUN_")) {
    const auto known = [&](const SettingRow& row) { return name == row.name; };
    if (std::any_of(kRows.begin(), kRows.end(), known) || is_tool_variable(name)) continue;
    if (!sentences.empty()) sentences += ' ';
    sentences += "unknown variable " + name + " is ignored";
    const auto close =
        std::min_element(kRows.begin(), kRows.end(), [&](const SettingRow& a, const SettingRow& b) {
          return edit_distance(name, a.name) < edit_distance(name, b.name);
        });
    if (edit_distance(name, close->name) <= 3)
      sentences += ", maybe " + std::string(close->name) + " was meant";
    sentences += '.';
  }
  return sentences;
}

Settings resolve_settings(const librun_config_t& config) {
  // Every variable is read, so that a bad value is found even where a field overrules it.
  for (const SettingRow& row : kRows) setting_value(row.name);

  Settings settings;
  settings.device = parse_enum<librun_device_t>(
      "LIBRUN_DEVICE",
      {{"auto", LIBRUN_DEVICE_AUTO}, {"host", LIBRUN_DEVICE_HOST}, {"cuda", LIBRUN_DEVICE_CUDA}});
  if (config.device != LIBRUN_DEVICE_UNSET) settings.device = config.device;
  if (config.device < LIBRUN_DEVICE_UNSET || config.device > LIBRUN_DEVICE_CUDA)
    reject_field("device", std::to_string(config.device), "LIBRUN_DEVICE_AUTO, _HOST or _CUDA");
  settings.cuda_device = config.cuda_device;

  const std::string algo_name = setting_value("LIBRUN_ALGO");
  for (int algo = 0; algo < LIBRUN_ALGO_COUNT; ++algo)
    if (algo_name == librun_algo_name(static_cast<librun_algo_t>(algo)))
      settings.algo = static_cast<librun_algo_t>(algo);
  if (config.algo != LIBRUN_ALGO_AUTO) settings.algo = config.algo;
  if (config.algo < 0 || config.algo >= LIBRUN_ALGO_COUNT)
    reject_field("algo", std::to_string(config.algo), "a librun_algo_t");

  settings.timeout = std::chrono::milliseconds(std::stol(setting_value("LIBRUN_TIMEOUT_MS")));
  settings.call_timeout =
      std::chrono::milliseconds(std::stol(setting_value("LIBRUN_CALL_TIMEOUT_MS")));
  const bool timeout_set = config.timeout_ms > 0 || setting_from_environment("LIBRUN_TIMEOUT_MS");
  if (config.timeout_ms < -1)
    reject_field("timeout_ms", std::to_string(config.timeout_ms), "-1 up");
  if (config.timeout_ms > 0) settings.timeout = std::chrono::milliseconds(config.timeout_ms);
  if (timeout_set && !setting_from_environment("LIBRUN_CALL_TIMEOUT_MS"))
    settings.call_timeout = settings.timeout;

  settings.arena_bytes = to_bytes(setting_value("LIBRUN_ARENA_BYTES")).value_or(0);
  if (config.arena_bytes != 0) settings.arena_bytes = config.arena_bytes;
  if (settings.arena_bytes != 0 &&
      (settings.arena_bytes < kMinArenaBytes || settings.arena_bytes > kMaxArenaBytes))
    reject_field("arena_bytes", std::to_string(config.arena_bytes), "65536 to 4294967296");
  settings.arena_bytes = (settings.arena_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;

  settings.check = setting_value("LIBRUN_CHECK") == "1";
  settings.selftest = setting_value("LIBRUN_SELFTEST") == "1";
  settings.cuda = {
      setting_value("LIBRUN_IPC"), setting_value("LIBRUN_PROGRAMMATIC_LAUNCH") == "1",
      static_cast<std::uint32_t>(to_bytes(setting_value("LIBRUN_MAX_BLOCKS")).value_or(0))};
  if (const std::string path = setting_value("LIBRUN_TUNING"); !path.empty())
    settings.tuning = std::make_shared<TuningTables>(TuningTables::read(path));
  settings.isa = setting_value("LIBRUN_ISA");
  settings.spin = setting_value("LIBRUN_SPIN");
  const std::string faults = setting_value("LIBRUN_FAULT");
  if (!faults.empty() && !fault::kEnabled)
    throw Error(LIBRUN_UNSUPPORTED, -1, "LIBRUN_FAULT is set, but this build has no fault hooks.",
                "configure with -DLIBRUN_FAULT_HOOKS=ON.");
  return settings;
}

std::string settings_json() {
  std::string json = "[";
  for (const SettingRow& row : kRows) {
    const auto value = environment_variable(row.name);
    const bool set = value && !value->empty();
    json += json.size() > 1 ? ",\n " : "\n ";
    json += "{\"name\": " + json_quote(row.name) +
            ", \"value\": " + json_quote(set ? *value : row.fallback) +
            ", \"source\": " + (set ? "\"environment\"" : "\"default\"") +
            ", \"valid\": " + (!set || row.valid(*value) ? "true" : "false") +
            ", \"default\": " + json_quote(row.fallback) + ", \"type\": " + json_quote(row.type) +
            ", \"unit\": " + json_quote(row.unit) + ", \"group\": " + json_quote(row.group) +
            ", \"doc\": " + json_quote(row.doc) + "}";
  }
  return json + "\n]\n";
}

}  // namespace librun
