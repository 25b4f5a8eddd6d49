// SPDX-License-Identifier: Apache-2.0
#include "car_stress/watchdog.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "common/exit_codes.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

constexpr std::chrono::milliseconds kLook{100};
/// The first MPI_Abort ends the other ranks too: let them print first.
constexpr std::chrono::milliseconds kLetOthersPrint{700};
/// MPI_Abort itself can wait for something that never comes.
constexpr unsigned kLastResortSeconds = 5;

std::string describe(const std::string& name, librun_comm_t comm) {
  librun_stats_t stats{};
  stats.struct_size = sizeof(stats);
  if (librun_comm_stats(comm, &stats) != LIBRUN_OK) return name + ": gone";
  return fmt::format(
      "{}: {}, rank {} of {}, generation {}, {} calls, {} open mappings, {} registered buffers, "
      "{} suspends",
      name, librun_state_name(stats.state), stats.rank, stats.world, stats.generation, stats.calls,
      stats.open_mappings, stats.registered_buffers, stats.suspends);
}

/// Whether the process was stopped by a signal; false where this machine does not tell.
bool is_stopped(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(file, stat);
  // The state follows the name, which is in brackets and may hold brackets.
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= stat.size()) return false;
  const char state = stat[end_of_name + 2];
  return state == 'T' || state == 't';
}

}  // namespace

Watchdog::Watchdog(const Journal& journal, std::chrono::milliseconds limit, std::vector<int> pids)
    : journal_(journal), limit_(limit), pids_(std::move(pids)), thread_([this] { keep_watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Watchdog::watch(const std::string& name, librun_comm_t comm) {
  const std::lock_guard lock(mutex_);
  comms_[name] = comm;
}

void Watchdog::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  comms_.erase(name);
}

void Watchdog::keep_watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kLook, [this] { return stop_; }))
    if (Journal::Clock::now() - journal_.now().since > limit_) report_and_abort();
}

void Watchdog::report_and_abort() {
  std::string text =
      fmt::format("car_stress: {}: no progress for {} ms\n", journal_.where(), limit_.count());
  for (const auto& [name, comm] : comms_)
    text += fmt::format("car_stress: rank {}: {}\n", journal_.rank(), describe(name, comm));
  for (std::size_t rank = 0; rank < pids_.size(); ++rank)
    if (is_stopped(pids_[rank]))
      text += fmt::format("car_stress: rank {} (process {}) is stopped\n", rank, pids_[rank]);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  std::this_thread::sleep_for(kLetOthersPrint);
  alarm(kLastResortSeconds);
  MPI_Abort(MPI_COMM_WORLD, kExitTimeout);
  _exit(kExitTimeout);
}

}  // namespace car::stress
