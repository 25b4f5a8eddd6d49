// SPDX-License-Identifier: Apache-2.0
#include "car_checkpoint/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/parse.hpp"

namespace car::checkpoint {
namespace {

constexpr const char* kPurpose =
    "car_checkpoint: checkpoints and restores the processes of one node by the\n"
    "NVIDIA driver: lock, checkpoint, hold, restore, unlock; each step over all of\n"
    "them before the next. Call librun_suspend in them before, librun_resume after.\n\n"
    "Examples:\n"
    "  car_checkpoint --list\n"
    "  car_checkpoint --job 4711.0\n"
    "  car_checkpoint --job 4711.0 --hold forever --gpu-map 0=1,1=0\n"
    "  car_checkpoint --action lock 101 102 && \\\n"
    "    car_checkpoint --action checkpoint 101 102";

constexpr const char* kFooter =
    "Refuses, before anything is touched, when a process has a blocker: what the\n"
    "driver would checkpoint without a word and never restore. Ctrl-C restores first.\n"
    "Exit codes: 0 all right; 1 refused or failed; 2 usage; 3 environment;\n"
    "4 a step took too long.\n";

constexpr std::pair<const char*, Action> kActions[] = {{"cycle", Action::cycle},
                                                       {"lock", Action::lock},
                                                       {"checkpoint", Action::checkpoint},
                                                       {"restore", Action::restore},
                                                       {"unlock", Action::unlock}};

std::chrono::seconds parse_seconds(const std::string& text, int low) {
  return std::chrono::seconds(parse_int(text, low, 7 * 24 * 3600));
}

/// Turns text into a value; what the conversion throws is a bad value of the option.
template <class Convert>
CLI::Option* add(CLI::App& app, const std::string& name, const std::string& type,
                 const std::string& help, Convert convert) {
  const auto set = [name, convert](const std::string& text) {
    try {
      convert(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return app.add_option_function<std::string>(name, set, help)->type_name(type);
}

void add_options(CLI::App& app, Options& o, bool& version) {
  const auto set_pids = [&o](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      try {
        o.pids.push_back(static_cast<pid_t>(parse_int(text, 1, std::numeric_limits<pid_t>::max())));
      } catch (const std::invalid_argument& error) {
        throw CLI::ValidationError("PID", error.what());
      }
    }
  };
  app.add_option_function<std::vector<std::string>>("PID", set_pids, "The processes")
      ->type_name("");
  app.add_option("--job", o.job, "All processes of yours that belong to this job")
      ->type_name("NAME");
  app.add_flag("--all", o.all, "All processes of yours that use librun");
  app.add_flag("--list", o.list, "Show the processes and what is in the way, and stop");
  add(app, "--action", "NAME", "cycle, or one step: lock, checkpoint, restore\nor unlock [cycle]",
      [&o](const std::string& text) {
        const auto row = std::ranges::find(kActions, text, [](const auto& r) { return r.first; });
        if (row == std::end(kActions))
          throw std::invalid_argument("\"" + text +
                                      "\" is not cycle, lock, checkpoint, restore or unlock");
        o.action = row->second;
      });
  add(app, "--hold", "SECONDS", "Stay checkpointed so long, or forever: until\nCtrl-C or Enter [0]",
      [&o](const std::string& text) {
        o.hold.reset();
        if (text != "forever") o.hold = parse_seconds(text, 0);
      });
  add(app, "--timeout", "SECONDS", "For each step [120]",
      [&o](const std::string& text) { o.timeout = parse_seconds(text, 1); });
  app.add_option("--gpu-map", o.gpu_map, "Restore onto other GPUs: old=new,...; ordinals or UUIDs")
      ->type_name("MAP");
  app.add_option("--json", o.json_file, "JSON instead of a table, to FILE or to stdout")
      ->type_name("[FILE]")
      ->expected(0, 1);
  app.add_flag("--version", version, "Show the version, and stop");
}

void check(const CLI::App& app, const Options& o) {
  const int ways = (o.pids.empty() ? 0 : 1) + (o.job.empty() ? 0 : 1) + (o.all ? 1 : 0);
  if (ways > 1) throw CLI::ValidationError("PID, --job and --all", "one of them says which");
  if (ways == 0 && !o.list)
    throw CLI::ValidationError("PID", "say which processes: PID..., --job NAME or --all");
  const bool restores = o.action == Action::cycle || o.action == Action::restore;
  if (!o.gpu_map.empty() && !restores)
    throw CLI::ValidationError("--gpu-map", "takes --action cycle or restore");
  if (app.count("--hold") && o.action != Action::cycle)
    throw CLI::ValidationError("--hold", "takes --action cycle");
}

}  // namespace

const char* name_of(Action action) { return kActions[static_cast<int>(action)].first; }

Parsed parse_options(int argc, char** argv) {
  Parsed parsed;
  bool version = false;
  CLI::App app(kPurpose, "car_checkpoint");
  app.footer(kFooter);
  app.get_formatter()->column_width(24);
  add_options(app, parsed.options, version);
  app.set_help_flag("-h,--help", "Show this, and stop");
  try {
    app.parse(argc, argv);
    if (version) return {{}, false, kExitOk, "car_checkpoint, " + version_text() + "\n"};
    check(app, parsed.options);
  } catch (const CLI::CallForHelp&) {
    return {{}, false, kExitOk, app.help()};
  } catch (const CLI::ParseError& error) {
    return {{},
            false,
            kExitUsage,
            fmt::format("car_checkpoint: {}\nTry car_checkpoint --help.\n", error.what())};
  }
  if (app.count("--json") && parsed.options.json_file.empty()) parsed.options.json_file = "-";
  return parsed;
}

}  // namespace car::checkpoint
