// SPDX-License-Identifier: Apache-2.0
// Ranks that lose one of them in the middle of a loop, and report what they were told and when.
// usage: survivors kill|exit|stop|run|create [count]
// run: nobody is lost; create: LIBRUN_FAULT ends one within librun_comm_create
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/device.hpp"
#include "support/waiting.hpp"

using namespace librun_test;

namespace {

using Clock = std::chrono::steady_clock;  // the same on all processes of a node
constexpr int kVictim = 2;
constexpr std::chrono::milliseconds kBefore{400};
constexpr std::chrono::milliseconds kStopped{2000};
constexpr std::chrono::milliseconds kAfterStop{1000};

long long milliseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// Rank 0 chooses the moment.
Clock::time_point agree_on_moment() {
  long long ticks = (Clock::now() + kBefore).time_since_epoch().count();
  MPI_Bcast(&ticks, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  return Clock::time_point(Clock::duration(ticks));
}

/// @return false when the sum of ones is wrong
bool sum(librun::Communicator& comm, DeviceVector<float>& data, int world) {
  std::fill(data.begin(), data.end(), 1.0f);
  all_reduce_and_wait(comm, data.data(), data.data(), data.size());
  return std::count(data.begin(), data.end(), static_cast<float>(world)) ==
         static_cast<long>(data.size());
}

/// Reduces until an error comes, and tells how long after `moment` that was.
[[noreturn]] void survive(librun::Communicator& comm, DeviceVector<float>& data, int rank,
                          int world, Clock::time_point moment) {
  try {
    for (;;)
      if (!sum(comm, data, world)) {
        std::printf("rank %d: WRONG SUM\n", rank);
        std::fflush(stdout);
        ::_exit(1);
      }
  } catch (const librun::Error& error) {
    const long long late_ms = milliseconds(Clock::now() - moment);
    std::string again;
    try {
      sum(comm, data, world);
    } catch (const librun::Error& second) {
      again = librun_status_string(second.code());
    }
    const auto closing = Clock::now();
    const librun_status_t closed = librun_comm_close(comm.get());
    std::printf(
        "survivor %d after_ms %lld status \"%s\" culprit %d again \"%s\" close \"%s\" "
        "close_ms %lld text %s\n",
        rank, late_ms, librun_status_string(error.code()), error.rank(), again.c_str(),
        librun_status_string(closed), milliseconds(Clock::now() - closing), error.what());
    std::fflush(stdout);
  }
  // MPI_Finalize would wait for the rank that is gone.
  ::_exit(0);
}

[[noreturn]] void survive_create(int rank) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = Clock::now();
  librun_comm_t comm{};
  const librun_status_t status = librun_comm_create(MPI_COMM_WORLD, nullptr, &comm);
  librun_error_info_t info{};
  info.struct_size = sizeof(info);
  librun_last_error_info(&info);
  std::printf("survivor %d after_ms %lld status \"%s\" culprit %d text %s\n", rank,
              milliseconds(Clock::now() - start), librun_status_string(status), info.rank,
              info.text);
  std::fflush(stdout);
  ::_exit(0);
}

/// @param stops whether the victim is stopped for a while
int run_on(librun::Communicator& comm, DeviceVector<float>& data, int rank, int world,
           Clock::time_point moment, bool stops) {
  std::vector<pid_t> pids(static_cast<std::size_t>(world));
  const pid_t mine = ::getpid();
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, pids.data(), sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
  std::thread stopper;
  if (stops && rank == 0)
    stopper = std::thread([&] {
      std::this_thread::sleep_until(moment);
      ::kill(pids[kVictim], SIGSTOP);
      std::this_thread::sleep_for(kStopped);
      ::kill(pids[kVictim], SIGCONT);
    });
  // The ranks leave the loop together: the decision goes through the sum itself.
  bool good = true;
  DeviceValue<float> more(static_cast<float>(world));
  while (*more == static_cast<float>(world)) {
    good = good && sum(comm, data, world);
    *more = Clock::now() < moment + kStopped + kAfterStop ? 1.0f : 0.0f;
    all_reduce_and_wait(comm, more.at(), more.at(), 1);
  }
  if (stopper.joinable()) stopper.join();
  comm.close();
  std::printf("rank %d: %s to the end\n", rank, good ? "exact" : "WRONG SUM");
  std::fflush(stdout);
  MPI_Finalize();
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string mode = argc > 1 ? argv[1] : "kill";
  const std::size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 16384;
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);

  if (const std::string problem = choose_device(); !problem.empty()) {
    std::printf("skipped: no CUDA here: %s\n", problem.c_str());
    MPI_Finalize();
    return 77;
  }
  if (mode == "create") survive_create(rank);
  librun::Communicator comm(MPI_COMM_WORLD);
  DeviceVector<float> data(count);
  const auto moment = agree_on_moment();
  if (mode == "stop" || mode == "run")
    return run_on(comm, data, rank, world, moment, mode == "stop");

  if (rank == kVictim) {
    std::thread([moment, mode] {
      std::this_thread::sleep_until(moment);
      if (mode == "exit") ::_exit(0);
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }
  survive(comm, data, rank, world, moment);
}
