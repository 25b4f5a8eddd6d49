// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_case.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <stdexcept>

namespace librun_test {
namespace {

const char* const kStates[] = {"idle", "call", "suspended", "failed"};
const std::set<std::string> kDeaths{"die", "exit", "abort", "stop"};

bool is_state(const std::string& point) {
  return std::find(std::begin(kStates), std::end(kStates), point) != std::end(kStates);
}

/// What a corrupt fault spoils: the identity of the machine, and a mapping.
bool can_corrupt(const std::string& point) {
  return point == "create_before_hello" || point == "resume_before_hello" ||
         point == "create_after_open" || point == "resume_after_open";
}

/// "before" and "after" stand between the call and its phase.
std::size_t side_at(const std::string& point) {
  return std::min(point.find("_before_"), point.find("_after_"));
}

bool means_something(const FaultPoint& point, const std::string& action) {
  const bool ipc = point.name.rfind("ipc_", 0) == 0;
  if (action == "corrupt") return can_corrupt(point.name) && point.nth == 1;
  // No process ends itself by a call of its own in the middle of the library.
  if (action == "exit" || action == "abort") return is_state(point.name);
  if (is_state(point.name)) return kDeaths.count(action) != 0;
  return !ipc || action == "fail" || action == "die";
}

}  // namespace

std::string FaultCase::text() const {
  return point + "@" + std::to_string(rank) + "#" + std::to_string(nth) + ":" + action;
}

std::string FaultCase::variable() const {
  if (is_state(point)) return "";
  FaultCase injected = *this;
  if (action == "pause") injected.action = "stop";
  return injected.text();
}

std::string FaultCase::call() const {
  if (point.rfind("ipc_", 0) == 0) return nth == 1 ? "create" : "resume";
  return point.substr(0, side_at(point));
}

std::string FaultCase::phase() const {
  const auto side = side_at(point);
  return side == std::string::npos ? "" : point.substr(point.find('_', side + 1) + 1);
}

FaultCase parse_case(const std::string& text) {
  static const std::regex kShape("([a-z_]+)@([0-9]+)#([0-9]+):([a-z]+(=[0-9]+)?)");
  std::smatch part;
  if (!std::regex_match(text, part, kShape))
    throw std::invalid_argument("\"" + text + "\" is no <point>@<rank>#<nth>:<action>");
  return {part[1], static_cast<unsigned>(std::stoul(part[3])), std::stoi(part[2]), part[4]};
}

std::vector<FaultPoint> read_points(const std::string& log_path) {
  static const std::regex kPhase(".* phase ([a-z_]+)_([a-z]+): [0-9]+ us");
  std::ifstream log(log_path);
  std::vector<FaultPoint> points;
  std::map<std::string, unsigned> seen;
  std::set<std::string> known;
  for (std::string line; std::getline(log, line);) {
    std::smatch part;
    if (!std::regex_match(line, part, kPhase)) continue;
    const std::string call = part[1];
    const std::string phase = part[2];
    // Faults are armed, and counted, anew by each creation.
    if (call == "create" && phase == "settings") seen.clear();
    const unsigned nth = ++seen[call + phase];
    if (!known.insert(call + phase + std::to_string(nth)).second) continue;
    for (const char* side : {"_before_", "_after_"}) points.push_back({call + side + phase, nth});
  }
  if (points.empty()) throw std::runtime_error("no phases in the log " + log_path);
  return points;
}

std::vector<FaultCase> make_table(const std::vector<FaultPoint>& points, int world,
                                  const std::vector<std::string>& actions, unsigned seed) {
  std::vector<FaultPoint> all = points;
  // The first of a creation, and the first of a resume: the scenario registers one buffer between.
  const auto n_peers = static_cast<unsigned>(world - 1);
  for (const auto& [name, nth] : {std::pair{"ipc_export", 1U},
                                  {"ipc_export", 2U},
                                  {"ipc_open", 1U},
                                  {"ipc_open", 2 * n_peers + 1}})
    all.push_back({name, nth});
  for (const char* state : kStates) all.push_back({state, 1});

  std::vector<FaultCase> table;
  for (const FaultPoint& point : all)
    for (const std::string& action : actions)
      for (int rank = 0; rank < world && means_something(point, action.substr(0, action.find('=')));
           ++rank)
        table.push_back({point.name, point.nth, rank, action});
  std::mt19937 random(seed);
  std::shuffle(table.begin(), table.end(), random);
  return table;
}

}  // namespace librun_test
