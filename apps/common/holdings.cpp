// SPDX-License-Identifier: Apache-2.0
#include "common/holdings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

namespace car {
namespace {

constexpr std::size_t kMostSamples = 1024;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

template <class Counts>
std::int64_t count_entries(const char* folder, Counts&& counts) {
  std::int64_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    count += counts(entry.path().filename().native());
  return count;
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

std::int64_t used_of(const Device& device, std::uint64_t available_at_start) {
  return static_cast<std::int64_t>(available_at_start) -
         static_cast<std::int64_t>(device.available_bytes());
}

}  // namespace

const std::vector<HoldingsField>& holdings_fields() {
  static const std::vector<HoldingsField> fields{
      {"descriptors", &Holdings::descriptors, 0},
      {"threads", &Holdings::threads, 0},
      {"mappings", &Holdings::mappings, 16},
      {"memory_files", &Holdings::memory_files, 0},
      {"shm_entries", &Holdings::shm_entries, 0},
      {"resident_bytes", &Holdings::resident_bytes, 4 * kMiB},
      {"device_bytes", &Holdings::device_bytes, 64 * kMiB},
  };
  return fields;
}

HoldingsProbe::HoldingsProbe(const Device& device) : device_(device) {
  if (device.kind() == LIBRUN_DEVICE_CUDA) available_at_start_ = device.available_bytes();
}

Holdings HoldingsProbe::look() const {
  Holdings held;
  const auto any = [](const std::string&) { return true; };
  held.descriptors = count_entries("/proc/self/fd", any);
  held.threads = count_entries("/proc/self/task", any);
  held.shm_entries = count_entries(
      "/dev/shm", [](const std::string& name) { return name.find("librun") != std::string::npos; });
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line); ++held.mappings)
    held.memory_files += line.find("/memfd:") != std::string::npos;
  held.resident_bytes = resident_bytes();
  if (device_.kind() == LIBRUN_DEVICE_CUDA)
    held.device_bytes = used_of(device_, available_at_start_);
  return held;
}

std::string HoldingsTrend::growth() const {
  std::string text;
  if (!is_known()) return text;
  for (const HoldingsField& field : holdings_fields()) {
    if (late.*field.value - early.*field.value <= field.slack) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", field.name, early.*field.value,
                        late.*field.value);
  }
  return text;
}

void HoldingsLog::add(const Holdings& sample) {
  if (added_++ % stride_ != 0) return;
  if (samples_.size() == kMostSamples) {
    for (std::size_t i = 0; i < kMostSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kMostSamples / 2);
    stride_ *= 2;
  }
  samples_.push_back(sample);
}

HoldingsTrend HoldingsLog::trend() const {
  HoldingsTrend trend;
  trend.samples = samples_.size();
  if (samples_.empty()) return trend;
  const std::size_t n = samples_.size();
  const std::span all(samples_);
  const auto second_quarter = n < 4 ? all.first(1) : all.subspan(n / 4, n / 2 - n / 4);
  const auto last_quarter = n < 4 ? all.last(1) : all.subspan(3 * n / 4);
  for (const HoldingsField& field : holdings_fields()) {
    const auto value = [&](const Holdings& held) { return held.*field.value; };
    trend.early.*field.value = value(*std::ranges::max_element(second_quarter, {}, value));
    trend.late.*field.value = value(*std::ranges::min_element(last_quarter, {}, value));
  }
  return trend;
}

}  // namespace car
