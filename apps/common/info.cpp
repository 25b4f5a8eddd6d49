// SPDX-License-Identifier: Apache-2.0
#include "common/info.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/gpu_info.hpp"
#include "librun/librun.hpp"

namespace car {
namespace {

nlohmann::json backend(const char* name, librun_device_t device) {
  char device_name[256] = {};
  const bool usable = librun_device_probe(device, device_name, sizeof(device_name)) == LIBRUN_OK;
  nlohmann::json entry{{"name", name}, {"usable", usable}};
  if (usable)
    entry["device"] = device_name;
  else
    entry["reason"] = librun_last_error();
  return entry;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find(','));
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof(cores), &cores);
  return CPU_COUNT(&cores);
}

}  // namespace

nlohmann::json settings() {
  std::size_t needed = 0;
  librun::detail::check(librun_settings_json(nullptr, 0, &needed));
  std::string text(needed, '\0');
  librun::detail::check(librun_settings_json(text.data(), text.size(), &needed));
  return nlohmann::json::parse(text.c_str());
}

std::string version_text() {
  int code = 0;
  librun_version(&code);
  return fmt::format("librun {}.{}.{} ({})", code / 10000, code / 100 % 100, code % 100,
                     CAR_GIT_HASH);
}

nlohmann::json collect_info() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  int code = 0;
  librun_version(&code);
  nlohmann::json types;
  for (int i = 0; i < LIBRUN_DTYPE_COUNT; ++i)
    types.push_back(librun_dtype_name(static_cast<librun_dtype_t>(i)));
  nlohmann::json algorithms;
  for (int i = 1; i < LIBRUN_ALGO_COUNT; ++i)
    algorithms.push_back(librun_algo_name(static_cast<librun_algo_t>(i)));
  return {
      {"schema", "librun.info/1"},
      {"version", fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100)},
      {"git", CAR_GIT_HASH},
      {"compiler", CAR_COMPILER},
      {"build_type", CAR_BUILD_TYPE},
      {"mpi", mpi_library()},
      {"host", host},
      {"usable_cores", usable_cores()},
      {"backends", {backend("host", LIBRUN_DEVICE_HOST), backend("cuda", LIBRUN_DEVICE_CUDA)}},
      {"cuda", collect_gpus()},
      {"limits",
       {{"ranks", LIBRUN_MAX_WORLD},
        {"registered_buffers", LIBRUN_MAX_BUFFERS},
        {"count", LIBRUN_MAX_COUNT}}},
      {"types", types},
      {"algorithms", algorithms},
      {"settings", settings()},
      {"checkpoint_blockers", librun::checkpoint_blockers()},
  };
}

std::string info_text(const nlohmann::json& info) {
  const auto text = [&](const char* key) { return info.at(key).get<std::string>(); };
  std::string out = fmt::format("librun      {} ({})\n", text("version"), text("git"));
  out += fmt::format("compiler    {}, {}\n", text("compiler"), text("build_type"));
  out += fmt::format("mpi         {}\n", text("mpi"));
  out += fmt::format("host        {}, {} usable cores\n", text("host"),
                     info.at("usable_cores").get<int>());
  for (const auto& entry : info.at("backends")) {
    const bool usable = entry.at("usable").get<bool>();
    out += fmt::format("backend     {}: {}\n", entry.at("name").get<std::string>(),
                       usable ? "usable" : entry.at("reason").get<std::string>());
  }
  out += gpus_text(info.at("cuda"));
  const auto& limits = info.at("limits");
  out += fmt::format("limits      {} ranks, {} registered buffers, {} elements a call\n",
                     limits.at("ranks").get<int>(), limits.at("registered_buffers").get<int>(),
                     limits.at("count").get<std::size_t>());
  out += "settings\n";
  for (const auto& row : info.at("settings")) {
    const std::string value = row.at("value").get<std::string>();
    out += fmt::format("  {:24} {:10} {}{}\n", row.at("name").get<std::string>(),
                       value.empty() ? "-" : value, row.at("source").get<std::string>(),
                       row.at("valid").get<bool>() ? "" : "  (bad value)");
  }
  const auto& blockers = info.at("checkpoint_blockers");
  out += fmt::format("checkpoint  {}\n", blockers.empty() ? "nothing in the way" : "blocked by:");
  for (const auto& line : blockers) out += "  " + line.get<std::string>() + "\n";
  return out;
}

}  // namespace car
