// SPDX-License-Identifier: Apache-2.0
// --calibrate: what the parts of an all-reduce take here, each by itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/device_choice.hpp"
#include "common/mpi_session.hpp"
#include "common/watchdog.hpp"

namespace car::info {

struct Reading {
  std::string what;  ///< flag_one_way, write_rate, ...
  double value = 0;
  std::string unit;            ///< ns, us, GB/s
  std::size_t size_bytes = 0;  ///< 0: does not apply, as for the next
  int blocks = 0;
};

struct Calibration {
  std::string device;
  int world = 1;
  bool shared = false;  ///< ranks share a GPU, or cores
  std::vector<Reading> readings;
};

/// Collective. Rates are of the slowest rank, all ranks at once, each with the one after it.
/// @throws librun::Error, std::runtime_error
Calibration calibrate(const MpiSession& session, const ChosenDevice& device, Watchdog& watchdog);

std::string calibration_text(const Calibration& calibration);
std::string calibration_json(const Calibration& calibration);

}  // namespace car::info
