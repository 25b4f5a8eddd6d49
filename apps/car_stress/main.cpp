// SPDX-License-Identifier: Apache-2.0
// car_stress: random work and suspend/resume cycles from one seed.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "car_stress/ending.hpp"
#include "car_stress/options.hpp"
#include "car_stress/soak.hpp"
#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/json_file.hpp"
#include "common/mpi_session.hpp"

namespace car::stress {
namespace {

/// What cannot be done here: the reason, and the exit code for it.
struct Refusal {
  std::string text;
  int exit_code;
};

std::optional<Refusal> refuse(const Options& options, const MpiSession& session) {
  const std::string launcher = wrong_launcher(session.world());
  if (!launcher.empty()) return Refusal{launcher, kExitEnvironment};
  if (session.world() < options.fewest_ranks)
    return Refusal{fmt::format("--scenario {} needs {} ranks or more, there are {}",
                               options.scenario, options.fewest_ranks, session.world()),
                   kExitUsage};
  if (options.kill && options.kill->rank >= session.world())
    return Refusal{
        fmt::format("--kill-rank {}: there are {} ranks", options.kill->rank, session.world()),
        kExitUsage};
  return std::nullopt;
}

/// Finds out before a long run whether its files can be written; the answer of rank 0 counts.
int check_files(const Options& options, const MpiSession& session) {
  int exit_code = kExitOk;
  if (session.is_rank0()) {
    try {
      if (!options.json_file.empty()) check_writable(options.json_file);
      if (!options.junit_file.empty()) check_writable(options.junit_file);
    } catch (const std::exception& error) {
      fmt::print(stderr, "car_stress: {}\n", error.what());
      exit_code = kExitEnvironment;
    }
  }
  return session.agree(exit_code);
}

std::optional<std::string> only_text(const Options& options, int world) {
  if (options.info && !options.json_file.empty()) return collect_info().dump(2) + "\n";
  if (options.info) return info_text(collect_info());
  if (options.list) return plan_text(options, world);
  return std::nullopt;
}

int run(int argc, char** argv) {
  const MpiSession session(&argc, &argv);
  const Parsed parsed = parse_options(argc, argv);
  const Options& options = parsed.options;
  if (!parsed.run) {
    if (session.is_rank0())
      std::fputs(parsed.text.c_str(), parsed.exit_code == kExitOk ? stdout : stderr);
    return parsed.exit_code;
  }
  if (const auto text = only_text(options, session.world())) {
    if (session.is_rank0()) std::fputs(text->c_str(), stdout);
    return kExitOk;
  }
  if (const auto refusal = refuse(options, session)) {
    if (session.is_rank0()) fmt::print(stderr, "car_stress: {}\n", refusal->text);
    return refusal->exit_code;
  }
  if (const int exit_code = check_files(options, session)) return exit_code;
  // Before the first communicator, which reads them.
  setenv("LIBRUN_CHECK", "1", 0);
  if (!options.fault.empty()) setenv("LIBRUN_FAULT", options.fault.c_str(), 1);
  return soak(options, session.rank(), session.world());
}

}  // namespace
}  // namespace car::stress

int main(int argc, char** argv) {
  try {
    return car::stress::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "car_stress: {}\n", error.what());
    car::stress::leave_alone(car::kExitEnvironment);
  }
}
