// SPDX-License-Identifier: Apache-2.0
// The settings: API field, then LIBRUN_* variable, then default. One table drives everything.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/device.hpp"
#include "librun/types.h"
#include "runtime/tuning.hpp"

namespace librun {

struct SettingRow {
  const char* name;
  const char* type;  ///< what a value may be, for people
  const char* unit;
  const char* fallback;
  const char* group;  ///< "system", or "debug": do not keep in production
  const char* doc;
  bool (*valid)(const std::string& value);
};

/// Every LIBRUN_* variable there is.
std::span<const SettingRow> setting_rows();

/// The variable's text, or the default. @throws Error{invalid_argument} naming variable and value
std::string setting_value(const std::string& name);
bool setting_from_environment(const std::string& name);

/// LIBRUN_* variables that do not exist, with what was probably meant, a sentence each.
std::string unknown_variables();

/// What one communicator runs with.
struct Settings {
  librun_device_t device = LIBRUN_DEVICE_AUTO;
  int cuda_device = -1;
  librun_algo_t algo = LIBRUN_ALGO_AUTO;
  std::chrono::milliseconds timeout{30000};
  std::chrono::milliseconds call_timeout{600000};
  std::size_t arena_bytes = 0;  ///< 0: what the device takes
  bool check = false;
  bool selftest = true;
  CudaOptions cuda;
  std::shared_ptr<const TuningTables> tuning;  ///< the user's; null: only the shipped ones
  std::string isa = "auto";
  std::string spin = "auto";
};

/// @throws Error{invalid_argument}
Settings resolve_settings(const librun_config_t& config);

/// The table as JSON, for tools.
std::string settings_json();

}  // namespace librun
