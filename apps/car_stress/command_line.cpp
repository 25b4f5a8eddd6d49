// SPDX-License-Identifier: Apache-2.0
// The flags of car_stress.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "car_stress/options.hpp"
#include "car_stress/scenarios.hpp"
#include "common/env_help.hpp"
#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

constexpr std::size_t kMinMaxBytes = std::size_t{4} << 10;
constexpr std::size_t kMaxMaxBytes = std::size_t{1} << 30;

constexpr const char* kPurpose =
    "car_stress: random all-reduces, graphs and suspend/resume, checked bit by bit.\n\n"
    "Examples (with more ranks than cores: mpirun --oversubscribe):\n"
    "  mpirun -np 4 car_stress --cycles 2000 --checkpoint fake\n"
    "  mpirun -np 8 car_stress --preset ci --junit stress.xml\n"
    "  mpirun -np 4 car_stress --seed 0x2a --cycle 412 --checkpoint fake";

constexpr const char* kFooter =
    "Sizes take K, M and G (binary). All that happens follows from the seed.\n"
    "Exit codes: 0 all right; 1 wrong result or failure; 2 usage; 3 environment;\n"
    "4 hang or timeout; 77 not run. Variables: --help-env.\n";

/// Adds options to one group of the help; a value is turned from text by a function that may throw.
class Flags {
 public:
  Flags(CLI::App& app, std::string group) : app_(app), group_(std::move(group)) {}

  template <class Convert>
  CLI::Option* text(const std::string& name, const std::string& type, const std::string& help,
                    Convert convert) {
    const auto set = [name, convert](const std::string& value) {
      try {
        convert(value);
      } catch (const std::invalid_argument& error) {
        throw CLI::ValidationError(name, error.what());
      }
    };
    return app_.add_option_function<std::string>(name, set, help)
        ->type_name(type)
        ->group(group_)
        ->take_last();  // what follows a scenario overrules it
  }

  CLI::Option* flag(const std::string& name, bool& value, const std::string& help) {
    return app_.add_flag(name, value, help)->group(group_);
  }

 private:
  CLI::App& app_;
  std::string group_;
};

Checkpoint parse_checkpoint(const std::string& text) {
  if (text == "none") return Checkpoint::none;
  if (text == "fake") return Checkpoint::fake;
  if (text == "driver") return Checkpoint::driver;
  throw std::invalid_argument("\"" + text + "\" is not none, fake or driver");
}

librun_algo_t parse_algo(const std::string& text) {
  const auto algos = parse_algos(text);
  if (algos.size() != 1) throw std::invalid_argument("one algorithm, or auto for a mix of all");
  return algos.front();
}

std::size_t parse_max_bytes(const std::string& text) {
  const std::uint64_t size_bytes = parse_size(text);
  if (size_bytes < kMinMaxBytes || size_bytes > kMaxMaxBytes)
    throw std::invalid_argument("\"" + text + "\" is not from 4K to 1G");
  return size_bytes;
}

int parse_small(const std::string& text, int low, int high) {
  return static_cast<int>(parse_int(text, low, high));
}

void add_work(CLI::App& app, Options& o, std::string& preset) {
  Flags flags(app, "Work");
  const auto set_cycles = [&o](const std::string& text) {
    o.cycles = parse_number(text, "a number of cycles");
    if (o.cycles == 0) throw std::invalid_argument("0 is no number of cycles: use 1 or more");
  };
  const auto set_first = [&o](const std::string& text) {
    o.first_cycle = parse_number(text, "a cycle");
  };
  flags.text("--cycles", "N", "Cycles to run [100]", set_cycles);
  flags.text("--duration", "TIME", "Time to run: 60s, 10m, 1h",
             [&o](const std::string& text) { o.duration = parse_duration(text); });
  flags.text("--preset", "NAME", "ci (60s), hour or night (8h), with fake checkpoints",
             [&preset](const std::string& text) {
               if (text != "ci" && text != "hour" && text != "night")
                 throw std::invalid_argument("\"" + text + "\" is not ci, hour or night");
               preset = text;
             });
  flags.text("--scenario", "ID", "The options of one of --list-scenarios",
             [&o](const std::string& text) {
               o.fewest_ranks = scenario_of(text).fewest_ranks;
               o.scenario = text;
             });
  flags.text("--seed", "N", "What all randomness comes from [1]", [&o](const std::string& text) {
    o.seed = parse_number(text, "a 64-bit number, decimal or 0x...");
  });
  flags.text("--first-cycle", "K", "Cycle to start from [0]", set_first);
  flags.text("--cycle", "K", "Run this one cycle only", set_first);
  flags.text("--calls-per-cycle", "N", "All-reduces of a cycle [10]",
             [&o](const std::string& text) { o.calls_per_cycle = parse_small(text, 0, 10000); });
  flags.text("--max-bytes", "SIZE", "Largest message [4M]",
             [&o](const std::string& text) { o.max_bytes = parse_max_bytes(text); });
  flags.text("--comms", "N", "Communicators [4]",
             [&o](const std::string& text) { o.groups = parse_small(text, 1, 32); });
  flags.text("--graphs", "N", "Recorded graphs, 0 for none [3]",
             [&o](const std::string& text) { o.graphs = parse_small(text, 0, 32); });
}

void add_device(CLI::App& app, Options& o) {
  Flags flags(app, "Device");
  flags.text("--device", "NAME", "auto, host or cuda [LIBRUN_DEVICE, else auto]",
             [&o](const std::string& text) { o.device = parse_device(text); });
  flags.text("--algo", "NAME",
             "auto (a mix of all), or ll, one_shot, two_shot,\nzero_copy or stepped for all [auto]",
             [&o](const std::string& text) { o.algo = parse_algo(text); });
  flags.text(
      "--checkpoint", "NAME",
      "none; fake: take the freed addresses, so that\nmappings must move; driver: a real one, "
      "on CUDA [none]",
      [&o](const std::string& text) { o.checkpoint = parse_checkpoint(text); });
  flags.text("--gpu-map", "MAP", "rotate: each restore by the driver moves all to\nthe next GPU",
             [&o](const std::string& text) {
               if (text != "rotate") throw std::invalid_argument("\"" + text + "\" is not rotate");
               o.rotate_gpus = true;
             });
}

void add_faults(CLI::App& app, Options& o) {
  Flags flags(app, "Faults");
  flags.text("--kill-rank", "R@K", "Kill rank R somewhere in cycle K",
             [&o](const std::string& text) { o.kill = parse_kill(text); });
  flags.text("--fault", "SPEC", "Set LIBRUN_FAULT: <point>@<rank>[#<nth>]:<action>",
             [&o](const std::string& text) { o.fault = text; });
  flags.text("--expect-failure", "TEXT", "Exit 0 only if the library fails and says TEXT",
             [&o](const std::string& text) { o.expected_failure = text; });
  flags.text("--timeout", "TIME", "Give up when nothing moves for so long [90s]",
             [&o](const std::string& text) { o.timeout = parse_duration(text); });
  flags.flag("--keep-going", o.keep_going, "Go on after a wrong result");
}

/// Options that print something and stop.
struct Asked {
  bool version = false;
  std::string help_env;
  std::string list_scenarios;
};

void add_output(CLI::App& app, Options& o, Asked& asked) {
  Flags flags(app, "Output");
  flags.text("--progress", "MODE", "auto, always or never [auto]", [&o](const std::string& text) {
    const auto mode = parse_progress_mode(text);
    if (!mode) throw std::invalid_argument("\"" + text + "\" is not auto, always or never");
    o.progress = *mode;
  });
  app.add_option("--json", o.json_file, "Summary as JSON, to stdout without FILE")
      ->expected(0, 1)
      ->type_name("[FILE]")
      ->group("Output");
  flags.flag("--json-lines", o.json_lines, "One JSON record a cycle on stdout");
  flags.text("--junit", "FILE", "Write a JUnit report",
             [&o](const std::string& text) { o.junit_file = text; });
  flags.flag("--list", o.list, "Show what the cycles do, and stop");
  flags.flag("--info", o.info, "Show versions, devices and settings, and stop");
  app.add_option("--list-scenarios", asked.list_scenarios,
                 "Show what goes wrong elsewhere, and its runs and\ntests, as text or markdown")
      ->expected(0, 1)
      ->type_name("[FORMAT]")
      ->group("Output");
  app.add_option("--help-env", asked.help_env, "Show the LIBRUN_* variables, as text or markdown")
      ->expected(0, 1)
      ->type_name("[FORMAT]")
      ->group("Output");
  flags.flag("--version", asked.version, "Show the version, and stop");
}

/// One cycle alone has a length already. (CLI11's excludes would fill the help.)
void check_alone(const CLI::App& app) {
  for (const char* other : {"--cycles", "--first-cycle", "--duration", "--preset"})
    if (app.count(other)) throw CLI::ValidationError("--cycle", fmt::format("excludes {}", other));
}

/// A preset gives what the command line does not.
void apply_preset(const CLI::App& app, Options& options, const std::string& name) {
  if (!app.count("--checkpoint")) options.checkpoint = Checkpoint::fake;
  if (!app.count("--max-bytes") && name == "night") options.max_bytes = std::size_t{64} << 20;
  if (!app.count("--duration"))
    options.duration = parse_duration(name == "ci" ? "60s" : name == "hour" ? "1h" : "8h");
}

/// The words of the command line, from the first on, behind those of the scenario that it names.
/// @throws std::invalid_argument: there is none of that name
std::vector<std::string> with_scenario(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  std::vector<std::string> words;
  const std::string flag = "--scenario";
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_split = given[i] == flag && i + 1 < given.size();
    if (!is_split && !given[i].starts_with(flag + "=")) continue;
    const std::string id = is_split ? given[i + 1] : given[i].substr(flag.size() + 1);
    words = CLI::detail::split_up(scenario_of(id).options);
  }
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

}  // namespace

Parsed parse_options(int argc, char** argv) {
  Parsed parsed;
  Options& options = parsed.options;
  std::string preset;
  Asked asked;
  CLI::App app(kPurpose, "car_stress");
  app.footer(kFooter);
  app.get_formatter()->column_width(26);
  add_work(app, options, preset);
  add_device(app, options);
  add_faults(app, options);
  add_output(app, options, asked);
  app.set_help_flag("-h,--help", "Show this, and stop")->group("Output");
  try {
    std::vector<std::string> words = with_scenario(argc, argv);
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(words);
    if (app.count("--cycle")) check_alone(app);
    if (options.rotate_gpus && options.checkpoint != Checkpoint::driver)
      throw CLI::ValidationError("--gpu-map", "takes --checkpoint driver");
    const auto format = [](const std::string& text) { return text.empty() ? "text" : text; };
    if (app.count("--help-env"))
      return {{}, false, kExitOk, env_help(format(asked.help_env)) + "\n"};
    if (app.count("--list-scenarios"))
      return {{}, false, kExitOk, scenario_list(format(asked.list_scenarios))};
  } catch (const CLI::CallForHelp&) {
    return {{}, false, kExitOk, app.help()};
  } catch (const CLI::ParseError& error) {
    return {{},
            false,
            kExitUsage,
            fmt::format("car_stress: {}\nTry car_stress --help.\n", error.what())};
  } catch (const std::invalid_argument& error) {
    return {{}, false, kExitUsage, fmt::format("car_stress: {}\n", error.what())};
  }
  if (asked.version) return {{}, false, kExitOk, "car_stress, " + version_text() + "\n"};
  if (!preset.empty()) apply_preset(app, options, preset);
  if (options.duration.count() != 0 && !app.count("--cycles")) options.cycles = 0;
  if (app.count("--cycle")) options.cycles = 1;
  if (app.count("--json") && options.json_file.empty()) options.json_file = "-";
  return parsed;
}

}  // namespace car::stress
