// SPDX-License-Identifier: Apache-2.0
// Programs that end in a way nobody should, and must still end well.
// usage: endings CASE, one of the names below
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "support/device.hpp"
#include "support/waiting.hpp"

using namespace librun_test;

namespace {

int rank = 0;
int world = 0;

bool mpi_used_by_thread = false;

bool sum_works(librun::Communicator& comm) {
  DeviceValue<int> sum(1);
  all_reduce_and_wait(comm, sum.at(), sum.at(), 1);
  return *sum == world;
}

int finalize(bool good) {
  MPI_Finalize();
  return good ? 0 : 1;
}

/// Destroyed after main has ended, long after MPI_Finalize.
librun::Communicator& static_communicator() {
  static librun::Communicator comm;
  return comm;
}

int static_object() {
  static_communicator() = librun::Communicator(MPI_COMM_WORLD);
  return finalize(sum_works(static_communicator()));
}

int leaked() {
  auto* comm = new librun::Communicator(MPI_COMM_WORLD);
  return finalize(sum_works(*comm));
}

int destroyed_without_close() {
  librun::Communicator comm(MPI_COMM_WORLD);
  const bool good = sum_works(comm);
  MPI_Barrier(MPI_COMM_WORLD);  // nobody is still waiting for that sum
  if (rank == 0) comm = librun::Communicator();
  return finalize(good);
}

int close_after_finalize() {
  librun::Communicator comm(MPI_COMM_WORLD);
  const bool good = sum_works(comm);
  MPI_Finalize();
  const librun_status_t status = librun_comm_close(comm.get());
  if (status != LIBRUN_OK) std::printf("close: %s\n", librun_last_error());
  return good && status == LIBRUN_OK ? 0 : 1;
}

int use_after_finalize() {
  librun::Communicator comm(MPI_COMM_WORLD);
  const bool good = sum_works(comm) && comm.suspend();
  MPI_Finalize();
  const librun_status_t status = librun_resume(comm.get(), 1000);
  std::printf("resume: %s\n", librun_last_error());
  return good && status != LIBRUN_OK && status != LIBRUN_ALREADY_THERE ? 0 : 1;
}

int create_before_init() {
  librun_comm_t comm{};
  const librun_status_t status = librun_comm_create(MPI_COMM_WORLD, nullptr, &comm);
  const bool named = std::strstr(librun_last_error(), "MPI_Init") != nullptr;
  return status == LIBRUN_MPI && named ? 0 : 1;
}

int suspended_at_exit() {
  librun::Communicator comm(MPI_COMM_WORLD);
  const bool good = sum_works(comm) && comm.suspend();
  return finalize(good);
}

/// Rank 1 drops its handle while all are suspended: the others' resume names it.
int left_while_suspended() {
  librun::Communicator comm(MPI_COMM_WORLD);
  bool good = comm.suspend();
  if (rank == 1) {
    comm = librun::Communicator();
  } else {
    const librun_status_t status = librun_resume(comm.get(), 1500);
    good = good && status != LIBRUN_OK && std::strstr(librun_last_error(), "rank 1");
    if (!good) std::printf("rank %d: %s\n", rank, librun_last_error());
  }
  return finalize(good);
}

/// MPI_Init gives MPI_THREAD_SINGLE: an abort on another thread must leave the news to this one.
int aborted_by_thread() {
  librun::Communicator comm(MPI_COMM_WORLD);
  bool good = comm.suspend();
  if (rank == 1) {
    std::thread([&] { comm.abort("pump on fire"); }).join();
    good = good && !mpi_used_by_thread;
    DeviceValue<int> value(1);
    good = good && librun_all_reduce(comm.get(), value.at(), value.at(), 1, LIBRUN_INT32,
                                     LIBRUN_SUM, nullptr) == LIBRUN_FAILED;
  } else {
    good = good && librun_resume(comm.get(), 20000) == LIBRUN_FAILED;
  }
  if (!good || !std::strstr(librun_last_error(), "rank 1 aborted: pump on fire")) {
    std::printf("rank %d: MPI used by the thread: %d; %s\n", rank, mpi_used_by_thread,
                librun_last_error());
    good = false;
  }
  return finalize(good && librun_comm_close(comm.get()) == LIBRUN_OK);
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {{"static_object", static_object},
                           {"leaked", leaked},
                           {"destroyed_without_close", destroyed_without_close},
                           {"close_after_finalize", close_after_finalize},
                           {"use_after_finalize", use_after_finalize},
                           {"suspended_at_exit", suspended_at_exit},
                           {"left_while_suspended", left_while_suspended},
                           {"aborted_by_thread", aborted_by_thread}};

}  // namespace

/// What the library sends goes through here.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  if (!is_main) mpi_used_by_thread = true;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "create_before_init") return create_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (const std::string problem = choose_device(); !problem.empty()) {
    std::printf("skipped: no CUDA here: %s\n", problem.c_str());
    MPI_Finalize();
    return 77;
  }
  for (const Case& one : kCases)
    if (name == one.name) return one.run();
  std::fprintf(stderr, "no such case: %s\n", name.c_str());
  MPI_Finalize();
  return 2;
}
