// SPDX-License-Identifier: Apache-2.0
// The contents of the JSON and the JUnit file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "car_stress/junit.hpp"
#include "car_stress/report.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

using nlohmann::ordered_json;

ordered_json times(const Durations& durations) {
  const auto rounded = [](double us) { return std::round(us * 10) / 10; };
  return {{"count", durations.count()},
          {"p50", rounded(durations.percentile_us(50))},
          {"p99", rounded(durations.percentile_us(99))},
          {"max", rounded(durations.longest_us())}};
}

/// One entry for each rank.
ordered_json held(const std::vector<HoldingsTrend>& trends) {
  ordered_json ranks = ordered_json::array();
  for (const HoldingsTrend& trend : trends) {
    ordered_json rank{{"samples", trend.samples}};
    rank["flat"] = trend.is_known() ? ordered_json(trend.growth().empty()) : ordered_json();
    for (const HoldingsField& field : holdings_fields())
      rank[field.name] = {{"early", trend.early.*field.value}, {"late", trend.late.*field.value}};
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::string Report::json(const std::string& error, int exit_code) const {
  ordered_json root{{"schema", "librun.stress/1"},
                    {"version", LIBRUN_VERSION_STRING},
                    {"ranks", world_},
                    {"seed", options_.seed},
                    {"first_cycle", tally_.first_cycle},
                    {"cycles", tally_.cycles},
                    {"moved_cycles", tally_.moved_cycles},
                    {"calls", tally_.calls},
                    {"graph_launches", tally_.launches},
                    {"refused_calls", tally_.refusals},
                    {"failures", tally_.failures},
                    {"checkpoints", tally_.checkpoints},
                    {"lost_slots", tally_.lost_slots},
                    {"elapsed_s", tally_.elapsed_s()},
                    {"suspend_us", times(tally_.suspend)},
                    {"resume_us", times(tally_.resume)},
                    {"checkpoint_us", times(tally_.checkpoint)},
                    {"restore_us", times(tally_.restore)},
                    {"held", held(trends_)},
                    {"exit_code", exit_code}};
  if (!options_.scenario.empty()) root["scenario"] = options_.scenario;
  if (!error.empty()) root["error"] = error;
  root["bad_cycles"] = ordered_json::array();
  for (const BadCycle& bad : tally_.bad_cycles)
    root["bad_cycles"].push_back({{"cycle", bad.cycle},
                                  {"text", bad.text},
                                  {"replay", replay_command(options_, world_, bad.cycle)}});
  return root.dump(2) + "\n";
}

/// What went wrong in the cycles from `begin` to before `end`.
std::string Report::findings(std::uint64_t begin, std::uint64_t end) const {
  std::string text;
  for (const BadCycle& bad : tally_.bad_cycles)
    if (bad.cycle >= begin && bad.cycle < end)
      text += fmt::format("{}cycle {}: {}; replay: {}", text.empty() ? "" : "\n", bad.cycle,
                          bad.text, replay_command(options_, world_, bad.cycle));
  return text;
}

std::string Report::junit(const std::string& error) const {
  const std::string& scenario = options_.scenario;
  TestSuite suite{
      "car_stress" + (scenario.empty() ? "" : "." + scenario), tally_.elapsed_s(), {}, {}, {}};
  suite.properties = {{"version", LIBRUN_VERSION_STRING},
                      {"ranks", std::to_string(world_)},
                      {"seed", fmt::format("{:#x}", options_.seed)},
                      {"replay", replay_command(options_, world_, tally_.first_cycle)}};
  const std::uint64_t end = tally_.first_cycle + tally_.cycles;
  double begun_s = 0;
  std::size_t part = 0;
  for (std::uint64_t at = tally_.first_cycle; at < end; at += kCyclesPerPart, ++part) {
    const std::uint64_t part_end = std::min(at + kCyclesPerPart, end);
    const double ended_s =
        part < tally_.part_ends_s.size() ? tally_.part_ends_s[part] : suite.seconds;
    suite.cases.push_back({fmt::format("cycles {} to {}", at, part_end - 1), ended_s - begun_s,
                           findings(at, part_end)});
    begun_s = ended_s;
  }
  suite.cases.push_back({"end of the run", suite.seconds - begun_s, error});
  suite.output = start_line() + "\n" + final_line(error) + "\n" + held_lines();
  return junit_text(suite);
}

}  // namespace car::stress
