// SPDX-License-Identifier: Apache-2.0
// The contents of the JSON and the JUnit file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "car_stress/report.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

/// A night has too many cycles for a test case each.
constexpr std::uint64_t kCyclesPerTestCase = 100;

std::string xml_escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

nlohmann::ordered_json times(const Durations& durations) {
  const auto rounded = [&](double percent) {
    return std::round(durations.percentile_us(percent) * 10) / 10;
  };
  return {{"count", durations.count()},
          {"p50", rounded(50)},
          {"p99", rounded(99)},
          {"max", rounded(100)}};
}

}  // namespace

std::string Report::json(const std::string& error, int exit_code) const {
  nlohmann::ordered_json root{{"schema", "librun.stress/1"},
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
                              {"exit_code", exit_code}};
  if (tally_.held_bytes) root["held_gpu_bytes"] = *tally_.held_bytes;
  if (!error.empty()) root["error"] = error;
  root["bad_cycles"] = nlohmann::ordered_json::array();
  for (const BadCycle& bad : tally_.bad_cycles)
    root["bad_cycles"].push_back({{"cycle", bad.cycle},
                                  {"text", bad.text},
                                  {"replay", replay_command(options_, world_, bad.cycle)}});
  return root.dump(2) + "\n";
}

std::string Report::junit(const std::string& error) const {
  std::string cases;
  std::size_t tests = 0;
  const auto add = [&](const std::string& name, const std::string& failure) {
    ++tests;
    cases += fmt::format("    <testcase classname=\"car_stress\" name=\"{}\"", name);
    if (failure.empty())
      cases += "/>\n";
    else
      cases +=
          fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n", xml_escape(failure));
  };
  for (const BadCycle& bad : tally_.bad_cycles)
    add(fmt::format("cycle {}", bad.cycle),
        bad.text + "; replay: " + replay_command(options_, world_, bad.cycle));
  const std::uint64_t end = tally_.first_cycle + tally_.cycles;
  for (std::uint64_t at = tally_.first_cycle; at < end; at += kCyclesPerTestCase)
    add(fmt::format("cycles {} to {}", at, std::min(at + kCyclesPerTestCase, end) - 1), "");
  if (!error.empty()) add("end of the run", error);
  const std::size_t failures = tally_.bad_cycles.size() + !error.empty();
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"car_stress\" tests=\"{}\" failures=\"{}\" time=\"{:.3f}\">\n{}"
      "  </testsuite>\n</testsuites>\n",
      tests, failures, tally_.elapsed_s(), cases);
}

}  // namespace car::stress
