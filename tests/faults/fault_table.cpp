// SPDX-License-Identifier: Apache-2.0
// Runs the rows of the table of faults that leave all ranks alive, many in one job.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "faults/fault_case.hpp"
#include "faults/scenario.hpp"
#include "support/rank_reports.hpp"

using namespace librun_test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kOverDeadline{2000};
constexpr std::chrono::milliseconds kPause{200};
/// Longer than all that the library may take for one row.
constexpr std::chrono::seconds kRowLimit{60};

struct Options {
  std::string points;
  std::string only;
  std::vector<std::string> actions{"fail", "delay=150", "corrupt", "pause"};
  unsigned seed = std::random_device{}();
  int np = 0;
  int seconds = 0;
  int timeout_ms = 3000;
};

char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const auto name_end = line.rfind(')');
  return name_end == std::string::npos ? '?' : line[name_end + 2];
}

/// Continues a process some time after it was stopped.
class Continuer {
 public:
  explicit Continuer(pid_t pid) : thread_([this, pid] { watch(pid); }) {}
  ~Continuer() {
    over_ = true;
    thread_.join();
  }
  Continuer(const Continuer&) = delete;
  Continuer& operator=(const Continuer&) = delete;
  bool did() const { return did_; }

 private:
  void watch(pid_t pid) {
    while (!over_) {
      if (state_of(pid) == 'T') {
        std::this_thread::sleep_for(kPause);
        did_ = true;  // before the process can tell that it goes on
        ::kill(pid, SIGCONT);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<bool> did_{false};
  std::thread thread_;
};

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options), reports_(MPI_COMM_WORLD) {
    const pid_t mine = ::getpid();
    pids_.resize(static_cast<std::size_t>(reports_.world()));
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, pids_.data(), sizeof(mine), MPI_BYTE,
                  MPI_COMM_WORLD);
    ::setenv("LIBRUN_TIMEOUT_MS", std::to_string(options.timeout_ms).c_str(), 1);
  }

  /// @return whether all rows were as they should
  bool run() {
    const std::vector<FaultCase> table =
        options_.only.empty() ? make_table(read_points(options_.points), reports_.world(),
                                           options_.actions, options_.seed)
                              : std::vector{parse_case(options_.only)};
    const auto end = Clock::now() + std::chrono::seconds(options_.seconds);
    std::size_t done = 0;
    std::size_t failed = 0;
    for (const FaultCase& row : table) {
      int more = options_.seconds == 0 || Clock::now() < end;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (!more) break;
      failed += run_row(row) ? 0 : 1;
      ++done;
    }
    if (reports_.rank() == 0)
      std::printf("np %d: %zu of %zu rows ran, %zu failed; --seed %u\n", reports_.world(), done,
                  table.size(), failed, options_.seed);
    return failed == 0 && done > 0;
  }

 private:
  bool run_row(const FaultCase& row) {
    ::setenv("LIBRUN_FAULT", row.variable().c_str(), 1);
    Ending ending;
    std::string problem;
    {
      const bool at_next = reports_.rank() == (row.rank + 1) % reports_.world();
      std::optional<Continuer> continuer;
      if (row.action == "pause" && at_next)
        continuer.emplace(pids_[static_cast<std::size_t>(row.rank)]);
      Life life(MPI_COMM_WORLD);
      ending = life.run(row.call() == "all_reduce");
      // A rank may stop where the others need it no more: they wait here until it went on.
      if (row.action == "pause") await_all(row);
      problem = row.action == "fail" || row.action == "corrupt"
                    ? check_failure(row, ending, life)
                    : check_success(row, ending, life, continuer);
    }
    ::unsetenv("LIBRUN_FAULT");
    return judge(row, await_all(row, ending.describe() + "\n" + problem));
  }

  /// @return the texts of all ranks, in order
  std::vector<std::string> await_all(const FaultCase& row, const std::string& text = "") {
    auto notes = reports_.exchange(text, kRowLimit);
    if (!notes.missing.empty()) {
      std::printf("FAILED %s: rank %d does not come back\n", row.text().c_str(),
                  notes.missing.front());
      std::fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return std::move(notes.texts);
  }

  std::string check_failure(const FaultCase& row, const Ending& ending, Life& life) const {
    const std::string culprit = "rank " + std::to_string(row.rank);
    if (ending.call != row.call()) return "the call that fails should be " + row.call();
    if (ending.text.find(culprit) == std::string::npos) return "the error does not name " + culprit;
    if (row.action == "fail" &&
        (ending.culprit != row.rank || ending.status != LIBRUN_SYSTEM ||
         ending.text.find("injected fault at " + row.point) == std::string::npos))
      return "the error does not name the fault";
    if (ending.elapsed > std::chrono::milliseconds(options_.timeout_ms) + kOverDeadline)
      return "it took " + std::to_string(ending.elapsed.count()) + " ms";
    const std::string problem = life.check_failed(ending.text);
    return problem.empty() ? fresh() : problem;
  }

  std::string check_success(const FaultCase& row, const Ending& ending, const Life& life,
                            const std::optional<Continuer>& continuer) const {
    if (!ending.call.empty()) return "nothing should fail";
    if (continuer && !continuer->did()) return "the rank did not stop";
    if (row.action.rfind("delay=", 0) != 0 || reports_.rank() != row.rank) return "";
    const std::chrono::milliseconds delay(std::stoi(row.action.substr(6)));
    return life.elapsed().at(row.call()) >= delay ? "" : "the rank was not late";
  }

  /// After a failure the next communicator works.
  static std::string fresh() {
    ::unsetenv("LIBRUN_FAULT");
    Life life(MPI_COMM_WORLD);
    const Ending ending = life.run(false);
    return ending.call.empty() ? "" : "a fresh communicator: " + ending.describe();
  }

  /// Each text is how the row ended on a rank, then what was wrong there.
  bool judge(const FaultCase& row, const std::vector<std::string>& texts) const {
    std::string complaint;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      const auto split = texts[rank].rfind('\n');
      const std::string ending = texts[rank].substr(0, split);
      const std::string problem = texts[rank].substr(split + 1);
      const bool differs = ending != texts[0].substr(0, texts[0].rfind('\n'));
      if (!problem.empty() || differs)
        complaint += "\n  rank " + std::to_string(rank) + ": " +
                     (problem.empty() ? "ends otherwise than rank 0" : problem) + "\n    " + ending;
    }
    if (complaint.empty()) return true;
    if (reports_.rank() == 0) {
      std::printf("FAILED %s%s\n  again: mpirun --oversubscribe -np %d fault_table --only '%s'\n",
                  row.text().c_str(), complaint.c_str(), reports_.world(), row.text().c_str());
      std::fflush(stdout);
    }
    return false;
  }

  const Options& options_;
  RankReports reports_;
  std::vector<pid_t> pids_;
};

/// What --points reads, with LIBRUN_LOG=debug.
bool run_clean() {
  bool good = true;
  for (const bool stepped : {false, true}) {
    Life life(MPI_COMM_WORLD);
    const Ending ending = life.run(stepped);
    if (!ending.call.empty())
      std::printf("FAILED without a fault: %s\n", ending.describe().c_str());
    good = good && ending.call.empty();
  }
  return good;
}

bool list(const Options& options) {
  for (const FaultCase& row :
       make_table(read_points(options.points), options.np, options.actions, options.seed))
    std::printf("%s\n", row.text().c_str());
  return true;
}

/// @param work sees all ranks alike
template <class Work>
int under_mpi(Work work) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  if (const std::string problem = choose_device(); !problem.empty()) {
    std::printf("skipped: no CUDA here: %s\n", problem.c_str());
    MPI_Finalize();
    return 77;
  }
  int failed = work() ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Rows of the table of faults. Under mpirun, but for --list."};
  bool clean = false;
  app.add_flag("--clean", clean, "run without a fault, to write the log for --points");
  app.add_option("--points", options.points, "log of a clean run at level debug");
  app.add_option("--list", options.np, "print the table for so many ranks");
  app.add_option("--only", options.only, "one row: <point>@<rank>#<nth>:<action>");
  app.add_option("--actions", options.actions, "fail, delay=ms, corrupt, pause, die, ...")
      ->delimiter(',');
  app.add_option("--seed", options.seed, "order of the rows");
  app.add_option("--seconds", options.seconds, "for how long to go on; 0: all rows");
  app.add_option("--timeout-ms", options.timeout_ms, "deadline of the library");
  CLI11_PARSE(app, argc, argv);
  if (options.np > 0) return list(options) ? 0 : 1;
  if (clean) return under_mpi(run_clean);
  return under_mpi([&] {
    MPI_Bcast(&options.seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return Runner(options).run();
  });
}
