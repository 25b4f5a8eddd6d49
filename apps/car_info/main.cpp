// SPDX-License-Identifier: Apache-2.0
// car_info: what this build of librun is and what this machine offers it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "car_info/calibration.hpp"
#include "common/device_choice.hpp"
#include "common/env_help.hpp"
#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/json_file.hpp"
#include "common/mpi_session.hpp"
#include "common/parse.hpp"
#include "common/watchdog.hpp"

namespace {

/// Collective. @param json_file "" for text
int calibrate(const car::MpiSession& session, librun_device_t device,
              const std::string& json_file) {
  if (const std::string why = car::wrong_launcher(session.world()); !why.empty())
    throw std::runtime_error(why);
  if (session.is_rank0() && !json_file.empty()) car::check_writable(json_file);
  constexpr std::chrono::seconds kLimit{60};
  car::Watchdog watchdog("car_info", kLimit, session.rank());
  const car::info::Calibration calibration =
      car::info::calibrate(session, car::choose_device(device, MPI_COMM_WORLD), watchdog);
  if (!session.is_rank0()) return car::kExitOk;
  if (json_file.empty())
    fmt::print("{}", car::info::calibration_text(calibration));
  else
    car::write_json(json_file, car::info::calibration_json(calibration));
  return car::kExitOk;
}

int run(const car::MpiSession& session, int argc, char** argv) {
  CLI::App app(
      "car_info: version, backends, limits, settings and checkpoint blockers of librun.\n\n"
      "Examples:\n"
      "  car_info\n"
      "  car_info --json\n"
      "  mpirun -np 2 car_info --calibrate\n"
      "  car_info --help-env",
      "car_info");
  std::string json_file;
  std::string help_env;
  librun_device_t device = LIBRUN_DEVICE_UNSET;
  std::string device_name;
  bool calibrates = false;
  bool version = false;
  app.add_option("--json", json_file, "JSON instead of text, to FILE or to stdout")
      ->type_name("[FILE]")
      ->expected(0, 1);
  app.add_option("--help-env", help_env, "the LIBRUN_* variables, as text or markdown")
      ->type_name("[FORMAT]")
      ->expected(0, 1);
  app.add_flag("--calibrate", calibrates,
               "what flags, links, memory and launches take here, between\nthe ranks of mpirun");
  app.add_option("--device", device_name, "for --calibrate: auto, host or cuda [auto]")
      ->type_name("NAME");
  app.add_flag("--version", version, "print the version");
  app.footer("Exit codes: 0 all right; 2 usage; 3 environment; 4 timeout.");
  try {
    app.parse(argc, argv);
    if (app.count("--help-env") && help_env.empty()) help_env = "text";
    if (!help_env.empty()) help_env = car::env_help(help_env);
    device = device_name.empty() ? LIBRUN_DEVICE_UNSET : car::parse_device(device_name);
  } catch (const CLI::CallForHelp&) {
    if (session.is_rank0()) fmt::print("{}", app.help());
    return car::kExitOk;
  } catch (const CLI::ParseError& error) {
    if (session.is_rank0())
      fmt::print(stderr, "car_info: {}\nTry car_info --help.\n", error.what());
    return car::kExitUsage;
  } catch (const std::invalid_argument& error) {
    if (session.is_rank0()) fmt::print(stderr, "car_info: {}\n", error.what());
    return car::kExitUsage;
  }
  const bool as_json = app.count("--json") > 0;
  if (as_json && json_file.empty()) json_file = "-";
  if (calibrates) return calibrate(session, device, json_file);
  if (!session.is_rank0()) return car::kExitOk;
  if (version) {
    fmt::print("{}\n", car::version_text());
  } else if (!help_env.empty()) {
    fmt::print("{}\n", help_env);
  } else if (as_json) {
    car::write_json(json_file, car::collect_info().dump(2) + "\n");
  } else {
    fmt::print("{}", car::info_text(car::collect_info()));
  }
  return car::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  const car::MpiSession session(&argc, &argv);
  try {
    return session.agree(run(session, argc, argv));
  } catch (const librun::Error& error) {
    return session.fail("car_info", error.what(), car::exit_code_of(error.code()));
  } catch (const std::exception& error) {
    return session.fail("car_info", error.what(), car::kExitEnvironment);
  }
}
