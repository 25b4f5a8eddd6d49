// SPDX-License-Identifier: Apache-2.0
#include "car_bench/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "common/env_help.hpp"
#include "common/exit_codes.hpp"
#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

constexpr const char* kPurpose =
    "car_bench: how fast librun's all-reduce is, with results checked bit by bit.\n\n"
    "Examples (with more ranks than cores: mpirun --oversubscribe):\n"
    "  mpirun -np 8 car_bench\n"
    "  mpirun -np 2 car_bench -b 8 -e 64M --baseline mpi -J out.json\n"
    "  mpirun -np 8 car_bench --suspend-every 1\n"
    "  mpirun -np 8 car_bench --tune=tuning.json -e 64M -G 20\n"
    "  mpirun -np 8 -x LIBRUN_TUNING=tuning.json car_bench --stats";

constexpr const char* kFooter =
    "Sizes take K, M and G (binary). Letters mean what they mean in nccl-tests.\n"
    "Exit codes: 0 all right; 1 wrong results or below --min-busbw; 2 usage;\n"
    "3 environment; 4 timeout; 77 not run. More: --help-env, docs/.";

constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 40;

/// An option whose text goes through `convert`, which throws std::invalid_argument.
template <class Convert>
void add(CLI::App& app, const char* group, const char* name, const char* type, const char* help,
         Convert convert) {
  app.add_option_function<std::string>(
         name,
         [name, convert](const std::string& text) {
           try {
             convert(text);
           } catch (const std::invalid_argument& error) {
             throw CLI::ValidationError(name, error.what());
           }
         },
         help)
      ->type_name(type)
      ->group(group)
      ->take_last();
}

/// `--tune=FILE` is written with its sign.
class HelpFormatter final : public CLI::Formatter {
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return text.rfind(" =", 0) == 0 ? text.substr(1) : text;
  }
};

bool color_by_default() { return ::isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR"); }

auto size_into(std::uint64_t& target) {
  return [&target](const std::string& text) {
    target = parse_size(text);
    if (target > kMaxSize) throw std::invalid_argument("\"" + text + "\" is above 1T");
  };
}
auto int_into(int& target, int low, int high) {
  return [&target, low, high](const std::string& text) {
    target = static_cast<int>(parse_int(text, low, high));
  };
}

void add_work(CLI::App& app, Options& o) {
  const char* const sizes = "Sizes";
  add(app, sizes, "-b,--minbytes", "SIZE", "first size [1K]", size_into(o.min_bytes));
  add(app, sizes, "-e,--maxbytes", "SIZE", "last size [16M]", size_into(o.max_bytes));
  add(app, sizes, "-f,--stepfactor", "N", "multiply by N [2]", size_into(o.step_factor));
  add(app, sizes, "-i,--stepbytes", "SIZE", "add SIZE instead", size_into(o.step_bytes));
  const char* const work = "Work";
  add(app, work, "-n,--iters", "N", "calls of one batch [as time allows]",
      int_into(o.iterations, 1, 1 << 24));
  add(app, work, "-w,--warmup_iters", "N", "calls before [10, or 1 if slow]",
      [&o](const std::string& text) { o.warmup = static_cast<int>(parse_int(text, 0, 1 << 20)); });
  add(app, work, "-m,--agg_iters", "N", "calls in a row that count as one [1]",
      int_into(o.aggregate, 1, 1 << 16));
  add(app, work, "-N,--run_cycles", "N", "how often to do everything; 0: for ever [1]",
      int_into(o.cycles, 0, 1 << 20));
  add(app, work, "-d,--datatype", "TYPE",
      "half, float, double, bfloat16, int8, uint8, int32,\nuint32, int64, uint64 or all [float]",
      [&o](const std::string& text) {
        o.dtypes = parse_dtypes(text);
        o.all_dtypes = text == "all";
      });
  add(app, work, "-o,--op", "OP", "sum, prod, min, max or all [sum]",
      [&o](const std::string& text) { o.ops = parse_ops(text); });
  add(app, work, "--algo", "ALGO",
      "auto, ll, one_shot, two_shot, zero_copy, stepped,\nor all [auto]",
      [&o](const std::string& text) { o.algos = parse_algos(text); });
  add(app, work, "-G,--graph,--cudagraph", "N", "replay a graph of N calls [0: eager]",
      int_into(o.graph_calls, 0, 1 << 16));
  add(app, work, "-R,--register", "0|1", "1: registered memory [0; 1 for zero_copy]",
      [&o](const std::string& text) {
        o.registered = parse_int(text, 0, 1) == 1;
        o.register_given = true;
      });
  app.add_flag("-u,--unalign", o.unaligned, "start one element behind an aligned address")
      ->group(work);
  add(app, work, "--suspend-every", "N", "suspend and resume after every N sizes [0: never]",
      int_into(o.suspend_every, 0, 1 << 20));
  app.add_option("--tune", o.tune_file,
                 "find the fastest algorithm by size, from 8 bytes\nto -e, and add it to FILE for "
                 "LIBRUN_TUNING; on an\nidle machine. Not \"--tune FILE\": that is mpirun's")
      ->type_name("=FILE")
      ->group(work);
  add(app, work, "--seed", "N", "seed of the data [1]",
      [&o](const std::string& text) { o.seed = parse_size(text); });
  const char* const device = "Device";
  add(app, device, "--device", "NAME", "auto, host or cuda [auto]",
      [&o](const std::string& text) { o.device = parse_device(text); });
  const auto one_only = [](const std::string& text) {
    if (text != "1") throw std::invalid_argument("one rank has one device: use mpirun -np N");
  };
  add(app, device, "-g,--ngpus", "1", "for nccl-tests' sake", one_only);
  add(app, device, "-t,--nthreads", "1", "for nccl-tests' sake", one_only);
}

void set_baselines(Options& o, const std::string& text) {
  o.baseline_mpi = o.baseline_nccl = o.baseline_baked = o.baseline_floor = false;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "mpi")
      o.baseline_mpi = true;
    else if (name == "nccl")
      o.baseline_nccl = true;
    else if (name == "baked")
      o.baseline_baked = true;
    else if (name == "floor")
      o.baseline_floor = true;
    else
      throw std::invalid_argument("\"" + name + "\" is no baseline: mpi, floor, nccl, baked");
  }
}

void add_output(CLI::App& app, Options& o) {
  const char* const checks = "Checks";
  add(app, checks, "-c,--check", "N", "N checks before and N after the timing [1]",
      int_into(o.checks, 0, 1000));
  add(app, checks, "--min-busbw", "GB/s", "end with 1 below 90 % of this on average",
      [&o](const std::string& text) {
        std::size_t used = 0;
        try {
          o.min_busbw = std::stod(text, &used);
        } catch (const std::exception&) {
          used = 0;
        }
        if (used != text.size() || text.empty() || o.min_busbw < 0)
          throw std::invalid_argument("\"" + text + "\" is no bandwidth");
      });
  add(app, checks, "-T,--timeout", "S", "end with 4 when a step takes S seconds [300]",
      [&o](const std::string& text) {
        o.timeout = std::chrono::seconds(parse_int(text, 1, 1 << 24));
      });
  const char* const output = "Output";
  add(app, output, "-a,--average", "N", "of ranks: 0 rank 0, 1 mean, 2 min, 3 max [3]",
      [&o](const std::string& text) { o.average = static_cast<Average>(parse_int(text, 0, 3)); });
  add(app, output, "--baseline", "NAMES",
      "measure beside, interleaved: mpi (from a GPU\nthrough the host); floor, the copies of the "
      "host\nwith nobody waiting; with --device cuda: nccl,\nand baked, librun's "
      "graphs without\nits table of pointers",
      [&o](const std::string& text) { set_baselines(o, text); });
  app.add_flag("--stats", o.stats,
               "columns with p5 and p95 of the batches, and what a\ncall takes: algorithm (* by a "
               "table of\nLIBRUN_TUNING), blocks of the GPU")
      ->group(output);
  app.add_flag("-S,--timestamps", o.timestamps, "a column with the time of day")->group(output);
  app.add_option("-J,--output_file,--json", o.json_file, "JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->group(output);
  app.add_flag("--json-lines", o.json_lines, "one record a line in that file")->group(output);
  app.add_option("--csv", o.csv_file,
                 "one row for each size, algorithm and place, to\nFILE or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->group(output);
  add(app, output, "--format", "nccl|osu", "the look of the table [nccl]",
      [&o](const std::string& text) {
        if (text != "nccl" && text != "osu")
          throw std::invalid_argument("\"" + text + "\" is no format: nccl, osu");
        o.osu = text == "osu";
      });
  add(app, output, "--progress", "MODE", "auto, always or never [auto]",
      [&o](const std::string& text) {
        const auto mode = parse_progress_mode(text);
        if (!mode) throw std::invalid_argument("\"" + text + "\" is none of auto, always, never");
        o.progress = *mode;
      });
  add(app, output, "--color", "MODE", "wrong rows in red: auto, always or never [auto]",
      [&o](const std::string& text) {
        if (text != "auto" && text != "always" && text != "never")
          throw std::invalid_argument("\"" + text + "\" is none of auto, always, never");
        o.color = text == "always" || (text == "auto" && color_by_default());
      });
  app.add_flag("-q,--quiet", o.quiet, "no table")->group(output);
}

/// zero_copy needs registered buffers: they come with it, unless the user says otherwise.
void settle_registration(Options& o) {
  const auto zero_copy = std::find(o.algos.begin(), o.algos.end(), LIBRUN_ALGO_ZERO_COPY);
  if (zero_copy == o.algos.end() || o.registered) return;
  if (!o.register_given)
    o.registered = true;
  else if (o.algos.size() > 1)
    o.algos.erase(zero_copy);
  else
    throw CLI::ValidationError("--algo zero_copy needs registered buffers: leave -R 0 out");
}

/// A table is made of all algorithms that are ever chosen.
void settle_tuning(Options& o, bool min_given, bool algo_given, bool cycles_given) {
  if (o.tune_file.empty()) return;
  const auto reject = [](const std::string& text) { throw CLI::ValidationError(text); };
  if (algo_given) reject("--tune runs all algorithms: leave --algo out");
  if (o.tune_file[0] == '-') reject("--tune needs a file: --tune=FILE");
  if (cycles_given && o.cycles == 0) reject("--tune ends after the last cycle, and -N 0 has none");
  const auto path = std::filesystem::weakly_canonical(o.tune_file);
  for (const std::string& other : {o.json_file, o.csv_file})
    if (!other.empty() && other != "-" && std::filesystem::weakly_canonical(other) == path)
      reject("--tune needs a file of its own, not " + other);
  constexpr int kCycles = 3;
  if (!cycles_given) o.cycles = kCycles;
  o.algos = {LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_ZERO_COPY};
  if (!min_given) o.min_bytes = 8;
}

bool asks_for_cuda(const Options& o) {
  const char* const variable = std::getenv("LIBRUN_DEVICE");
  return o.device == LIBRUN_DEVICE_CUDA ||
         (o.device == LIBRUN_DEVICE_UNSET && variable && std::string(variable) == "cuda");
}

void validate(const Options& o, bool factor_given, bool step_given) {
  const auto reject = [](const std::string& text) { throw CLI::ValidationError(text); };
  if (factor_given && step_given) reject("-f and -i exclude each other: give one");
  if (step_given && o.step_bytes == 0) reject("-i is 0: the sizes would never end");
  if (!step_given && o.step_factor < 2) reject("-f takes 2 up: the sizes would never end");
  if (o.min_bytes > o.max_bytes)
    reject(fmt::format("-b {} is above -e {}", size_text(o.min_bytes), size_text(o.max_bytes)));
  if (o.min_bytes == 0 && !step_given)
    reject("-b 0 stays 0 however often it is multiplied: use -i");
  if (o.baseline_baked && o.suspend_every > 0)
    reject("--baseline baked holds pointers, which --suspend-every would move");
  if (o.baseline_nccl && !asks_for_cuda(o)) reject("--baseline nccl needs --device cuda");
  if (o.baseline_baked && !asks_for_cuda(o)) reject("--baseline baked needs --device cuda");
  if (o.baseline_baked && o.graph_calls == 0) reject("--baseline baked needs -G, say -G 100");
  if (o.baseline_floor && asks_for_cuda(o)) reject("--baseline floor needs --device host");
  if (o.json_file == "-" && o.csv_file == "-")
    reject("JSON and CSV cannot both go to standard output: give one a file");
  if (o.all_dtypes) return;
  for (const std::uint64_t size : sizes_of(o))
    if (size % librun_dtype_bytes(o.dtypes[0]) != 0)
      reject(fmt::format("{} bytes are not a multiple of one {} ({} bytes)", size,
                         librun_dtype_name(o.dtypes[0]), librun_dtype_bytes(o.dtypes[0])));
}

}  // namespace

std::vector<std::uint64_t> sizes_of(const Options& options) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = options.min_bytes; size <= options.max_bytes;
       size = options.step_bytes ? size + options.step_bytes : size * options.step_factor)
    sizes.push_back(size);
  return sizes;
}

Parsed parse_options(int argc, char** argv) {
  Parsed parsed;
  Options& o = parsed.options;
  for (int i = 0; i < argc; ++i) o.command += (i ? " " : "") + std::string(argv[i]);

  o.color = color_by_default();
  CLI::App app(kPurpose, "car_bench");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(30);
  add_work(app, o);
  add_output(app, o);
  const char* const tell = "Diagnostics";
  app.add_flag("--info", o.info, "what this build and machine are")->group(tell);
  app.add_flag("--list", o.list, "what would be measured, not run")->group(tell);
  app.add_flag("--allow-singletons", o.allow_singletons,
               "ignore that the launcher's ranks are apart")
      ->group(tell);
  std::string env_format;
  app.add_option("--help-env", env_format, "the LIBRUN_* variables, as text or markdown")
      ->type_name("[FORMAT]")
      ->expected(0, 1)
      ->group(tell);
  app.set_version_flag("--version", version_text())->group(tell);

  std::ostringstream out;
  try {
    if (std::any_of(argv, argv + argc,
                    [](const char* word) { return std::string(word) == "--tune"; }))
      throw CLI::ValidationError(
          "write --tune=FILE, with '=': mpirun takes \"--tune FILE\" for an option of its own, and "
          "complains of the file");
    app.parse(argc, argv);
    if (app.count("--json") > 0 && o.json_file.empty()) o.json_file = "-";
    if (app.count("--csv") > 0 && o.csv_file.empty()) o.csv_file = "-";
    settle_tuning(o, app.count("-b") > 0, app.count("--algo") > 0, app.count("-N") > 0);
    settle_registration(o);
    validate(o, app.count("-f") > 0, app.count("-i") > 0);
    if (app.count("--help-env") == 0) return parsed;
    out << env_help(env_format.empty() ? "text" : env_format) << "\n";
  } catch (const CLI::ParseError& error) {
    std::ostringstream problem;
    const int code = app.exit(error, out, problem);
    parsed.exit_code = code == 0 ? kExitOk : kExitUsage;
    out << problem.str();
  } catch (const std::invalid_argument& error) {
    parsed.exit_code = kExitUsage;
    out << error.what() << "\n";
  }
  parsed.run = false;
  parsed.text = out.str();
  return parsed;
}

}  // namespace car::bench
