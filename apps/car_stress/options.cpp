// SPDX-License-Identifier: Apache-2.0
#include "car_stress/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "librun/librun.h"

namespace car::stress {
namespace {

std::optional<std::uint64_t> to_number(std::string_view text) {
  const bool is_hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  const std::string_view digits = is_hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, is_hex ? 16 : 10);
  if (error != std::errc{} || rest != end || digits.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::uint64_t parse_number(std::string_view text, const char* what) {
  if (const auto value = to_number(text)) return *value;
  throw std::invalid_argument(fmt::format("\"{}\" is not {}", text, what));
}

const char* name_of(Checkpoint checkpoint) {
  constexpr const char* kNames[] = {"none", "fake", "driver"};
  return kNames[static_cast<int>(checkpoint)];
}

Limits limits_of(const Options& options, int world) {
  Limits limits;
  limits.seed = options.seed;
  limits.world = world;
  limits.calls_per_cycle = options.calls_per_cycle;
  limits.max_bytes = options.max_bytes;
  limits.groups = options.groups;
  limits.graphs = options.graphs;
  limits.algo = options.algo;
  limits.must_move = options.checkpoint == Checkpoint::fake;
  limits.suspend_everything = options.checkpoint == Checkpoint::driver;
  return limits;
}

std::string replay_command(const Options& options, int world, std::uint64_t cycle) {
  const Options usual;
  std::string text =
      fmt::format("mpirun -np {} car_stress --seed {:#x} --cycle {}", world, options.seed, cycle);
  if (options.checkpoint != Checkpoint::none)
    text += fmt::format(" --checkpoint {}", name_of(options.checkpoint));
  if (options.rotate_gpus) text += " --gpu-map rotate";
  if (options.calls_per_cycle != usual.calls_per_cycle)
    text += fmt::format(" --calls-per-cycle {}", options.calls_per_cycle);
  if (options.max_bytes != usual.max_bytes)
    text += fmt::format(" --max-bytes {}", options.max_bytes);
  if (options.groups != usual.groups) text += fmt::format(" --comms {}", options.groups);
  if (options.graphs != usual.graphs) text += fmt::format(" --graphs {}", options.graphs);
  if (options.device == LIBRUN_DEVICE_HOST) text += " --device host";
  if (options.device == LIBRUN_DEVICE_CUDA) text += " --device cuda";
  if (options.algo != LIBRUN_ALGO_AUTO)
    text += fmt::format(" --algo {}", librun_algo_name(options.algo));
  if (options.kill)
    text += fmt::format(" --kill-rank {}@{}", options.kill->rank, options.kill->cycle);
  if (!options.fault.empty()) text += fmt::format(" --fault '{}'", options.fault);
  return text;
}

std::chrono::seconds parse_duration(std::string_view text) {
  std::uint64_t scale = 1;
  std::string_view digits = text;
  if (!text.empty() && (text.back() < '0' || text.back() > '9')) {
    scale = text.back() == 's' ? 1 : text.back() == 'm' ? 60 : text.back() == 'h' ? 3600 : 0;
    digits.remove_suffix(1);
  }
  constexpr std::uint64_t kLongest = 365ull * 24 * 3600;
  const auto value = to_number(digits);
  if (!value || *value == 0 || scale == 0 || *value > kLongest / scale)
    throw std::invalid_argument(fmt::format("\"{}\" is not a time such as 60s, 10m or 1h", text));
  return std::chrono::seconds(*value * scale);
}

Kill parse_kill(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos)
    throw std::invalid_argument(fmt::format("\"{}\" is not <rank>@<cycle>", text));
  const std::uint64_t rank = parse_number(text.substr(0, at), "a rank");
  if (rank >= LIBRUN_MAX_WORLD) throw std::invalid_argument("the rank is too large");
  return {static_cast<int>(rank), parse_number(text.substr(at + 1), "a cycle")};
}

}  // namespace car::stress
