// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace car {
namespace {

GpuUuid parse_gpu(const std::string& text, std::span<const GpuUuid> gpus) {
  const bool is_ordinal =
      !text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == std::string::npos;
  if (is_ordinal) {
    const auto ordinal = static_cast<std::size_t>(std::stoul(text));
    if (ordinal < gpus.size()) return gpus[ordinal];
    throw std::invalid_argument(fmt::format("there is no GPU {}: there are {}", text, gpus.size()));
  }
  for (const GpuUuid& gpu : gpus)
    if (uuid_text(gpu) == text) return gpu;
  throw std::invalid_argument("\"" + text + "\" is no GPU of this machine: see car_info");
}

}  // namespace

std::string uuid_text(const GpuUuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::vector<GpuMove> parse_gpu_map(const std::string& text, std::span<const GpuUuid> gpus) {
  std::vector<GpuMove> moves;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos) throw std::invalid_argument("\"" + part + "\" is not old=new");
    const GpuMove move{parse_gpu(part.substr(0, sign), gpus),
                       parse_gpu(part.substr(sign + 1), gpus)};
    for (const GpuMove& other : moves)
      if (other.from == move.from || other.to == move.to)
        throw std::invalid_argument("\"" + part + "\" names a GPU for the second time");
    moves.push_back(move);
  }
  if (moves.empty()) throw std::invalid_argument("\"" + text + "\" is not old=new,...");
  // The driver refuses a map that leaves out a GPU of the process: the others stay where they are.
  for (const GpuUuid& gpu : gpus) {
    const auto is_from = [&](const GpuMove& move) { return move.from == gpu; };
    const auto is_to = [&](const GpuMove& move) { return move.to == gpu; };
    const bool leaves = std::ranges::any_of(moves, is_from);
    const bool taken = std::ranges::any_of(moves, is_to);
    if (!leaves && !taken) moves.push_back({gpu, gpu});
  }
  return moves;
}

std::vector<GpuMove> rotation_of(std::span<const GpuUuid> gpus) {
  std::vector<GpuMove> moves;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    moves.push_back({gpus[i], gpus[(i + 1) % gpus.size()]});
  return moves;
}

const char* name_of(CudaState state) {
  switch (state) {
    case CudaState::running:
      return "running";
    case CudaState::locked:
      return "locked";
    case CudaState::checkpointed:
      return "checkpointed";
    case CudaState::failed:
      return "failed";
    case CudaState::unknown:
      break;
  }
  return "unknown";
}

}  // namespace car
