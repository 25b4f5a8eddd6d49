// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "common/gpu_info.hpp"

namespace car {
namespace {

std::string text_of(const nlohmann::json& object, const char* key) {
  return object.at(key).get<std::string>();
}

std::string driver_text(const nlohmann::json& driver) {
  std::string missing;
  for (const auto& [name, there] : driver.at("checkpoint").items())
    if (!there.get<bool>()) missing += " " + name;
  const std::string module = text_of(driver, "kernel_module");
  return fmt::format(
      "cuda        driver {}{}, runtime {}\ncuda        checkpoint of processes: {}\n",
      text_of(driver, "cuda"), module.empty() ? "" : " (" + module + ")",
      text_of(driver, "runtime"),
      missing.empty() ? "in this driver" : "not in this driver:" + missing);
}

std::string gpu_line(const nlohmann::json& gpu) {
  return fmt::format(
      "gpu {:<7} {}, {}, {}, compute {}, {} MiB, file descriptors {}\n",
      gpu.at("ordinal").get<int>(), text_of(gpu, "name"), text_of(gpu, "uuid"),
      text_of(gpu, "bus_id"), text_of(gpu, "compute_capability"),
      gpu.at("memory_bytes").get<std::uint64_t>() >> 20,
      gpu.at("exports_file_descriptors").get<bool>() ? "can be exported" : "cannot be exported");
}

}  // namespace

std::string gpus_text(const nlohmann::json& gpus) {
  if (!gpus.at("available").get<bool>()) return {};
  std::string text = driver_text(gpus.at("driver"));
  for (const auto& gpu : gpus.at("gpus")) text += gpu_line(gpu);
  const auto& peers = gpus.at("peers");
  if (peers.size() < 2) return text;
  text += "peers      ";
  for (std::size_t to = 0; to < peers.size(); ++to) text += fmt::format(" {:>8}", to);
  for (std::size_t from = 0; from < peers.size(); ++from) {
    text += fmt::format("\n  from {:<4}", from);
    for (const auto& reach : peers[from]) text += fmt::format(" {:>8}", reach.get<std::string>());
  }
  return text + "\n";
}

}  // namespace car
