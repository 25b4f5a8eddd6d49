// SPDX-License-Identifier: Apache-2.0
// car_info: what this build of librun is and what this machine offers it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/env_help.hpp"
#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/json_file.hpp"
#include "common/mpi_session.hpp"

namespace {

int run(int argc, char** argv) {
  const car::MpiSession session(&argc, &argv);
  CLI::App app(
      "car_info: version, backends, limits, settings and checkpoint blockers of librun.\n\n"
      "Examples:\n"
      "  car_info\n"
      "  car_info --json\n"
      "  car_info --help-env",
      "car_info");
  std::string json_file;
  std::string help_env;
  bool version = false;
  app.add_option("--json", json_file, "JSON instead of text, to FILE or to stdout")
      ->type_name("FILE")
      ->expected(0, 1)
      ->default_str("-");
  app.add_option("--help-env", help_env, "the LIBRUN_* variables, as text or markdown")
      ->type_name("FORMAT")
      ->expected(0, 1)
      ->default_str("text");
  app.add_flag("--version", version, "print the version");
  app.footer("Exit codes: 0 all right; 2 usage; 3 environment.");
  try {
    app.parse(argc, argv);
    if (app.count("--help-env") && help_env.empty()) help_env = "text";
    if (!help_env.empty()) help_env = car::env_help(help_env);
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
  if (!session.is_rank0()) return car::kExitOk;
  if (version) {
    fmt::print("{}\n", car::version_text());
  } else if (!help_env.empty()) {
    fmt::print("{}\n", help_env);
  } else if (app.count("--json")) {
    car::write_json(json_file.empty() ? "-" : json_file, car::collect_info().dump(2) + "\n");
  } else {
    fmt::print("{}", car::info_text(car::collect_info()));
  }
  return car::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "car_info: {}\n", error.what());
    return car::kExitEnvironment;
  }
}
