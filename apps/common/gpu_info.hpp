// SPDX-License-Identifier: Apache-2.0
// What CUDA has on this machine, for a bug report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace car {

/// {"available": false, "reason": ...}, or the driver, its GPUs, and what reaches what.
nlohmann::json collect_gpus();
/// Lines of text; "" where CUDA is not available.
std::string gpus_text(const nlohmann::json& gpus);

}  // namespace car
