// SPDX-License-Identifier: Apache-2.0
// Rows of the table in which a rank dies, or stops for ever. Several in one job: each group of
// ranks has one. The survivors of a group compare what they were told, and say when.
// usage: mpirun -np <ranks of a row * rows> fault_deaths ROW...
// FAULT_TRAIL names a file in which each survivor says that it ended, or what it crashed with: so
// the script knows what is mpirun's doing and what is ours.
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "faults/board.hpp"
#include "faults/fault_case.hpp"
#include "faults/scenario.hpp"
#include "support/wait_for.hpp"

using namespace librun_test;

namespace {

using Clock = std::chrono::steady_clock;  // the same in all processes of a node
constexpr std::chrono::milliseconds kOverDeadline{2000};

/// In the first phase of a call of an active communicator a rank may be dead before its peers have
/// made the call: their monitor tells them, of no phase.
bool may_be_told_before(const std::string& phase) {
  return phase == "precheck" || phase == "places" || phase == "agree" || phase == "arguments" ||
         phase == "ask";
}

/// Without the phase where a rank met it, and without who tells it: of two ranks that give up in
/// the same moment each tells of its own wait.
std::string cause_of(const char* ending) {
  static const std::regex met("[a-z_]+ failed in phase [a-z]+: ");
  static const std::regex teller("rank [0-9]+: all_reduce call [0-9]+: ");
  static const std::regex step(" \\(step [0-9]+\\)");
  std::string cause = std::regex_replace(ending, met, "");
  cause = std::regex_replace(cause, teller, "all_reduce: ");
  return std::regex_replace(cause, step, "");
}
/// Longer than all that the library may take for one row, and shorter than what the script gives a
/// job: so a row that hangs is told by its judge, and a job without a verdict is mpirun's doing.
constexpr std::chrono::seconds kRowLimit{30};
constexpr const char* kTimeoutMs = "4000";

struct Report {
  std::atomic<int> done;
  long long told_ms;  ///< when the error came
  long long elapsed_ms;
  char ending[1200];
  char problem[1200];
};

struct Notes {
  std::atomic<long long> death_ms;  ///< 0: nobody has died
  Report reports[LIBRUN_MAX_WORLD];
};

long long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

int trail_fd = -1;
char crash_line[200] = "";

/// Async-signal-safe.
void leave_trail(const char* line) {
  if (trail_fd >= 0) static_cast<void>(!::write(trail_fd, line, std::strlen(line)));
}

void on_crash(int signal) {
  leave_trail(crash_line);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void open_trail(const FaultCase& row, int rank) {
  const char* path = std::getenv("FAULT_TRAIL");
  trail_fd = path ? ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  std::snprintf(crash_line, sizeof(crash_line), "crashed %s rank %d\n", row.text().c_str(), rank);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, on_crash);
}

template <std::size_t N>
void set_text(char (&field)[N], const std::string& text) {
  text.copy(field, N - 1);
}

/// The ranks of one row.
class Group {
 public:
  Group(MPI_Comm mpi, const FaultCase& row) : mpi_(mpi), row_(row), notes_(mpi) {
    MPI_Comm_rank(mpi, &rank_);
    MPI_Comm_size(mpi, &world_);
    pids_.resize(static_cast<std::size_t>(world_));
    const pid_t mine = ::getpid();
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, pids_.data(), sizeof(mine), MPI_BYTE, mpi);
  }

  /// Ends the process.
  [[noreturn]] void run() {
    const int judge = row_.rank == 0 ? 1 : 0;
    open_trail(row_, rank_);
    if (rank_ == judge) {
      note_death();
      watch_myself();
    }
    Life life(mpi_, true);
    const Ending ending = rank_ == row_.rank ? be_victim(life) : survive(life);
    Report& mine = notes_->reports[rank_];
    mine.told_ms = mine.told_ms != 0 ? mine.told_ms : now_ms();
    mine.elapsed_ms = ending.elapsed.count();
    // An empty text is left out of the comparison.
    if (!ended_before(ending)) set_text(mine.ending, ending.describe());
    set_text(mine.problem, check(ending, life));
    mine.done = 1;
    if (rank_ != judge) end(0);
    const bool good = verdict();
    ::kill(pids_[static_cast<std::size_t>(row_.rank)], SIGKILL);
    // MPI_Finalize would wait for the rank that is gone.
    end(good ? 0 : 1);
  }

 private:
  [[noreturn]] void end(int code) const {
    leave_trail(("ended " + row_.text() + "\n").c_str());
    ::_exit(code);
  }

  /// The moment at which the kernel says that the victim has ended.
  void note_death() {
    const int victim =
        static_cast<int>(::syscall(SYS_pidfd_open, pids_[static_cast<std::size_t>(row_.rank)], 0));
    std::thread([this, victim] {
      pollfd entry{victim, POLLIN, 0};
      if (::poll(&entry, 1, -1) > 0) notes_->death_ms = now_ms();
    }).detach();
  }

  /// The judge itself may hang in the library.
  void watch_myself() {
    std::thread([this] {
      std::this_thread::sleep_for(kRowLimit + kOverDeadline + std::chrono::seconds(8));
      say("FAILED", "\n  the judge, rank " + std::to_string(rank_) + ", does not come back");
      ::_exit(1);
    }).detach();
  }

  void say(const char* word, const std::string& rest) const {
    std::printf("%s %s np %d%s\n", word, row_.text().c_str(), world_, rest.c_str());
    std::fflush(stdout);
  }

  void end_here() const {
    if (row_.action == "exit") ::_exit(0);
    if (row_.action == "abort") {
      ::signal(SIGABRT, SIG_DFL);
      ::abort();
    }
    ::kill(::getpid(), row_.action == "stop" ? SIGSTOP : SIGKILL);
  }

  /// Until all ranks are in the state where the victim ends.
  Ending come_to_state(Life& life) {
    const bool suspended = row_.point == "suspended";
    const Ending ending = life.run(false, suspended ? "resume" : "suspend");
    if (!ending.call.empty()) return ending;
    life.meet();
    if (row_.point == "failed") {
      if (rank_ == row_.rank) librun_abort(life.comm(), "the test says so");
      wait_for([&] { return life.state() == LIBRUN_FAILED_STATE; });
      life.meet();
    }
    return {};
  }

  Ending be_victim(Life& life) {
    if (!row_.phase().empty() || row_.variable() != "")
      return life.run(row_.call() == "all_reduce");
    const Ending ending = come_to_state(life);
    if (!ending.call.empty()) return ending;
    if (row_.point != "call") end_here();
    std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      end_here();
    }).detach();
    return sum_until_error(life);
  }

  Ending survive(Life& life) {
    if (row_.variable() != "") return life.run(row_.call() == "all_reduce");
    const Ending ending = come_to_state(life);
    if (!ending.call.empty()) return ending;
    if (row_.point == "call") return sum_until_error(life);
    if (row_.point == "suspended") return one("resume", [&] { return life.resume(); });
    if (row_.point == "failed") return one("check", [&] { return librun_check(life.comm()); });
    // Nobody calls: only the state tells. A rank that stopped is not noticed until it is needed.
    if (row_.action == "stop") return one("suspend", [&] { return life.suspend(); });
    wait_for([&] { return life.state() == LIBRUN_FAILED_STATE; });
    notes_->reports[rank_].told_ms = now_ms();
    return one("check", [&] { return librun_check(life.comm()); });
  }

  static Ending sum_until_error(Life& life) {
    for (;;) {
      const Ending ending = one("all_reduce", [&] { return life.sum(); });
      if (ending.status != LIBRUN_OK) return ending;
    }
  }

  template <class Call>
  static Ending one(const char* name, Call call) {
    const auto start = Clock::now();
    const librun_status_t status = call();
    return Ending::of(name, status,
                      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start));
  }

  /// To unregister and to close are local once a communicator has failed: who heard of the death
  /// just before made that call in peace.
  bool ended_before(const Ending& ending) const {
    if (!may_be_told_before(row_.phase())) return false;
    if (row_.call() == "close") return ending.call.empty();
    return row_.call() == "unregister" && ending.call == "close";
  }

  std::string check(const Ending& ending, Life& life) const {
    if (rank_ == row_.rank) return "the victim lives on";
    if (ended_before(ending)) return "";
    if (ending.call.empty()) return "nothing failed";
    const bool in_phase = !row_.phase().empty();
    if (!row_.variable().empty() && ending.call != row_.call())
      return "the call that fails should be " + row_.call();
    if (ending.culprit != row_.rank ||
        ending.text.find("rank " + std::to_string(row_.rank)) == std::string::npos)
      return "the error does not name rank " + std::to_string(row_.rank);
    const bool needs_wait = row_.action == "stop";
    if (row_.point != "failed" && ending.status != LIBRUN_TIMEOUT &&
        (needs_wait || ending.status != LIBRUN_PEER_LOST))
      return "the status should be another";
    const bool was_told_before = may_be_told_before(row_.phase()) &&
                                 ending.text.find(" failed in phase ") == std::string::npos;
    if (in_phase && !was_told_before && ending.text.find(row_.phase()) == std::string::npos)
      return "the error does not name the phase " + row_.phase();
    if (ending.elapsed > std::chrono::milliseconds(std::stoi(kTimeoutMs)) + kOverDeadline)
      return "it took " + std::to_string(ending.elapsed.count()) + " ms";
    // What a link told is the cause, in whatever phase it was met.
    const auto loss = ending.text.find(" is gone: ");
    return life.check_failed(loss == std::string::npos ? ending.text : ending.text.substr(loss));
  }

  /// Whether a link told at once; otherwise the deadline did.
  bool was_noticed() const {
    return std::strstr(notes_->reports[rank_].ending, "peer lost") != nullptr;
  }

  bool verdict() {
    const auto survivors_done = [&] {
      for (int rank = 0; rank < world_; ++rank)
        if (rank != row_.rank && notes_->reports[rank].done == 0) return false;
      return true;
    };
    std::string complaint;
    if (!wait_for(survivors_done, kRowLimit)) complaint += "\n  not all survivors came back";
    // A process that aborts has closed its links some time before it ends.
    if (row_.action != "stop") wait_for([&] { return notes_->death_ms != 0; });
    long long late_ms = 0;
    for (int rank = 0; rank < world_; ++rank) {
      const Report& report = notes_->reports[rank];
      if (report.done == 0) continue;
      const char* const judged = notes_->reports[rank_].ending;
      const bool differs =
          report.ending[0] != 0 && judged[0] != 0 && cause_of(report.ending) != cause_of(judged);
      if (differs || report.problem[0] != 0)
        complaint += "\n  rank " + std::to_string(rank) + ": " +
                     (report.problem[0] ? report.problem : "ends otherwise") + "\n    " +
                     report.ending;
      late_ms = std::max(late_ms, report.told_ms - notes_->death_ms.load());
    }
    const std::string late =
        was_noticed() ? " told_after_ms " + std::to_string(late_ms) : std::string();
    say(complaint.empty() ? "ok" : "FAILED", late + complaint);
    return complaint.empty();
  }

  MPI_Comm mpi_;
  FaultCase row_;
  Board<Notes> notes_;
  int rank_ = 0;
  int world_ = 1;
  std::vector<pid_t> pids_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (const std::string problem = choose_device(); !problem.empty()) {
    std::printf("skipped: no CUDA here: %s\n", problem.c_str());
    MPI_Finalize();
    return 77;
  }
  if (argc < 2 || world % (argc - 1) != 0) {
    if (rank == 0) std::fprintf(stderr, "usage: mpirun -np <ranks * rows> fault_deaths ROW...\n");
    MPI_Finalize();
    return 2;
  }
  const int index = rank / (world / (argc - 1));
  const FaultCase row = parse_case(argv[1 + index]);
  ::setenv("LIBRUN_TIMEOUT_MS", kTimeoutMs, 1);
  ::setenv("LIBRUN_FAULT", row.variable().c_str(), 1);
  MPI_Comm mpi = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, index, rank, &mpi);
  Group(mpi, row).run();
}
