// SPDX-License-Identifier: Apache-2.0
#include "car_stress/soak.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "car_stress/driver_checkpoint.hpp"
#include "car_stress/ending.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/mpi_groups.hpp"
#include "car_stress/report.hpp"
#include "car_stress/runner.hpp"
#include "car_stress/tally.hpp"
#include "car_stress/watchdog.hpp"
#include "common/exit_codes.hpp"

namespace car::stress {
namespace {

/// Says what failed, once, and writes the files.
void report_failure(const librun::Error& error, int exit_code, const Options& options,
                    const Journal& journal, Report& report, int world, int culprit) {
  const bool expected = exit_code == kExitOk;
  std::string text =
      fmt::format("{}: {}{}", journal.where(), expected ? "expected: " : "", error.what());
  if (culprit >= 0) text += fmt::format(" (It is rank {} of the run.)", culprit);
  std::string message = "car_stress: " + text + "\n";
  // Nothing of the plan is to blame for a machine or a setting that does not fit.
  const bool has_run = exit_code != kExitEnvironment;
  if (has_run && !expected && journal.rank() == 0)
    message +=
        "car_stress: to replay it: " + replay_command(options, world, journal.now().cycle) + "\n";
  std::fputs(message.c_str(), stderr);
  std::fflush(stderr);
  if (has_run) report.finish(expected ? "" : text, exit_code);
}

/// By rank. Collective.
std::vector<HoldingsTrend> trends_of_all(const Tally& tally, int world) {
  std::vector<HoldingsTrend> trends(static_cast<std::size_t>(world));
  const HoldingsTrend mine = tally.held.trend();
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, trends.data(), sizeof(mine), MPI_BYTE,
                MPI_COMM_WORLD);
  return trends;
}

/// What is wrong with the run although no cycle was; "" when nothing is.
std::string problem_of(const Options& options, const Tally& tally,
                       const std::vector<HoldingsTrend>& trends) {
  const std::size_t world = trends.size();
  if (!options.expected_failure.empty()) return "the library did not fail as --expect-failure asks";
  const bool must_move = options.checkpoint == Checkpoint::fake && world > 1;
  if (must_move && tally.moved_cycles != tally.cycles)
    return fmt::format("no mapping moved in {} cycles", tally.cycles - tally.moved_cycles);
  for (std::size_t rank = 0; rank < world; ++rank)
    if (const std::string growth = trends[rank].growth(); !growth.empty())
      return fmt::format("rank {} holds more and more: {}", rank, growth);
  if (options.checkpoint == Checkpoint::driver && tally.checkpoints != tally.cycles)
    return fmt::format("{} cycles had no checkpoint", tally.cycles - tally.checkpoints);
  return {};
}

/// Collective.
std::vector<int> pids_of_all(int world) {
  std::vector<int> pids(static_cast<std::size_t>(world));
  const int mine = ::getpid();
  MPI_Allgather(&mine, 1, MPI_INT, pids.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return pids;
}

}  // namespace

int soak(const Options& asked, int rank, int world) {
  Options options = asked;
  const ChosenDevice device = choose_device(options.device, MPI_COMM_WORLD);
  MpiGroups mpi(MPI_COMM_WORLD, options.seed);
  Journal journal(rank);
  Tally tally;
  const auto not_run = [rank](const NotRun& reason) {
    if (rank == 0) fmt::print(stderr, "car_stress: not run: {}\n", reason.what());
    return kExitSkip;
  };
  std::unique_ptr<DriverCheckpoint> checkpoint;
  std::string left_out;
  if (options.checkpoint == Checkpoint::driver) {
    try {
      checkpoint = std::make_unique<DriverCheckpoint>(
          options, device, Agreement(mpi.control(), [] {}), journal, tally);
    } catch (const NotRun& reason) {
      mpi.free();
      return not_run(reason);
    }
    left_out = leave_out_waiting(options, device);
  }
  Watchdog watchdog(journal, options.timeout, pids_of_all(world));
  Report report(options, rank, world, tally);
  report.start();
  report.note(left_out);
  auto runner = std::make_optional<Runner>(options, device, mpi, world, checkpoint.get(), journal,
                                           watchdog, tally, report);
  try {
    runner->run();
  } catch (const NotRun& reason) {
    runner.reset();
    return everyone_is_here(mpi.control()) ? not_run(reason) : kExitSkip;
  } catch (const librun::Error& error) {
    const int exit_code = exit_code_of(error, options, tally.cycles == 0);
    report_failure(error, exit_code, options, journal, report, world, runner->culprit(error));
    journal.doing("end after a failure");
    runner.reset();
    const bool peers_live = error.code() != LIBRUN_PEER_LOST && error.code() != LIBRUN_TIMEOUT;
    if (!peers_live || !everyone_is_here(mpi.control())) leave_alone(exit_code);
    return exit_code;
  }
  runner.reset();
  mpi.free();
  const std::vector<HoldingsTrend> trends = trends_of_all(tally, world);
  report.compare(trends);
  const std::string problem = problem_of(options, tally, trends);
  const int exit_code = tally.failures || !problem.empty() ? kExitFailure : kExitOk;
  if (rank == 0 && !problem.empty()) fmt::print(stderr, "car_stress: {}\n", problem);
  report.finish(problem, exit_code);
  return exit_code;
}

std::string plan_text(const Options& options, int world) {
  const Limits limits = limits_of(options, world);
  std::string text;
  const std::uint64_t end = options.first_cycle + (options.cycles ? options.cycles : 1);
  for (std::uint64_t cycle = options.first_cycle; cycle < end; ++cycle) {
    const EpochPlan epoch = plan_epoch(limits, cycle / kCyclesPerEpoch);
    text += fmt::format("cycle {}\n  comm 0: {}\n", cycle, describe(plan_first_group(limits)));
    for (std::size_t i = 0; i < epoch.groups.size(); ++i)
      text += fmt::format("  comm {}: {}\n", i + 1, describe(epoch.groups[i]));
    for (const std::string& line : describe(plan_cycle(limits, epoch, cycle)))
      text += "  " + line + "\n";
  }
  return text;
}

}  // namespace car::stress
