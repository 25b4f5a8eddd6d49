// SPDX-License-Identifier: Apache-2.0
#include "car_stress/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json_file.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

constexpr std::size_t kKeptBadCycles = 100;

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::max(0.0, seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Report::Report(const Options& options, int rank, int world, Tally& tally)
    : options_(options),
      is_rank0_(rank == 0),
      world_(world),
      stream_(options.json_lines || options.json_file == "-" ? stderr : stdout),
      tally_(tally),
      progress_(options.progress, rank == 0) {
  tally_.first_cycle = options.first_cycle;
}

void Report::note(const std::string& line) {
  if (is_rank0_ && !line.empty()) fmt::print(stream_, "# {}\n", line);
}

std::string Report::start_line() const {
  std::string until;
  if (options_.cycles != 0) until = fmt::format("{} cycles", options_.cycles);
  if (options_.duration.count() != 0)
    until += fmt::format("{}{} s", until.empty() ? "" : " or ", options_.duration.count());
  return fmt::format(
      "# car_stress {}: {}{} rank{}, {}, seed {:#x}, checkpoint {}", LIBRUN_VERSION_STRING,
      options_.scenario.empty() ? "" : "scenario " + options_.scenario + ", ", world_,
      world_ == 1 ? "" : "s", until, options_.seed, name_of(options_.checkpoint));
}

void Report::start() {
  if (!is_rank0_) return;
  fmt::print(stream_, "{}\n", start_line());
  std::fflush(stream_);
  // A run that is killed has failed, also for those who read only the file.
  if (!options_.junit_file.empty())
    write_json(options_.junit_file, junit("the run did not come to its end: see its output"));
}

void Report::cycle_done(std::uint64_t cycle, const CycleNotes& notes, const std::string& finding) {
  ++tally_.cycles;
  tally_.moved_cycles += notes.moved;
  if (tally_.cycles % kCyclesPerPart == 0) tally_.part_ends_s.push_back(tally_.elapsed_s());
  if (notes.wrong) {
    ++tally_.failures;
    if (tally_.bad_cycles.size() < kKeptBadCycles) tally_.bad_cycles.push_back({cycle, finding});
    if (is_rank0_) {
      progress_.finish();
      fmt::print(stderr, "car_stress: cycle {} failed; to replay it: {}\n", cycle,
                 replay_command(options_, world_, cycle));
    }
  }
  if (!is_rank0_) return;
  if (options_.json_lines) {
    const nlohmann::ordered_json line{{"cycle", cycle},
                                      {"ok", !notes.wrong},
                                      {"moved", notes.moved},
                                      {"hash", fmt::format("{:016x}", notes.hash)},
                                      {"elapsed_s", tally_.elapsed_s()}};
    fmt::print("{}\n", line.dump());
  }
  if (progress_.due()) progress_.update(progress_line());
}

std::string Report::progress_line() const {
  const double elapsed = tally_.elapsed_s();
  double part = 0;
  if (options_.cycles != 0)
    part = static_cast<double>(tally_.cycles) / static_cast<double>(options_.cycles);
  if (options_.duration.count() != 0)
    part = std::max(part, elapsed / static_cast<double>(options_.duration.count()));
  part = std::clamp(part, 1e-6, 1.0);
  const std::string of = options_.cycles != 0 ? fmt::format("/{}", options_.cycles) : "";
  return fmt::format("cycle {}{}  {:.0f} %  eta {}  {}  failures {}", tally_.cycles, of, part * 100,
                     clock_text(elapsed / part - elapsed), describe_times(tally_), tally_.failures);
}

std::string Report::final_line(const std::string& error) const {
  std::string text = fmt::format("{} cycles, ", tally_.cycles);
  if (options_.checkpoint == Checkpoint::fake)
    text += fmt::format("{} moved mappings, ", tally_.moved_cycles);
  if (options_.checkpoint == Checkpoint::driver)
    text += fmt::format(
        "{} checkpoints by the driver (p50 {:.0f} ms, restore {:.0f} ms), {} slots became staged, ",
        tally_.checkpoints, tally_.checkpoint.percentile_us(50) / 1000,
        tally_.restore.percentile_us(50) / 1000, tally_.lost_slots);
  text += fmt::format("{} calls, {} graph launches, {} refused calls, {} failures, {}, {:.1f} s",
                      tally_.calls, tally_.launches, tally_.refusals,
                      tally_.failures + !error.empty(), describe_times(tally_), tally_.elapsed_s());
  return text;
}

/// One line of what rank 0 holds, and one for each rank that holds more and more.
std::string Report::held_lines() const {
  if (trends_.empty()) return {};
  const HoldingsTrend& first = trends_.front();
  if (!first.is_known())
    return fmt::format("what is held: not compared, that takes {} cycles\n",
                       HoldingsTrend::kMinSamples * kCyclesPerEpoch);
  std::string text = "what rank 0 holds, early and late:";
  for (const HoldingsField& field : holdings_fields())
    text += fmt::format(" {} {} {}", field.name, first.early.*field.value, first.late.*field.value);
  text += "\n";
  for (std::size_t rank = 0; rank < trends_.size(); ++rank)
    if (const std::string growth = trends_[rank].growth(); !growth.empty())
      text += fmt::format("rank {} holds more and more: {}\n", rank, growth);
  return text;
}

void Report::finish(const std::string& error, int exit_code) {
  if (!is_rank0_) return;
  progress_.finish();
  fmt::print(stream_, "{}\n{}", final_line(error), held_lines());
  if (!options_.json_file.empty()) write_json(options_.json_file, json(error, exit_code));
  if (!options_.junit_file.empty()) write_json(options_.junit_file, junit(error));
  std::fflush(nullptr);
}

}  // namespace car::stress
