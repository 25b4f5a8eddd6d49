// SPDX-License-Identifier: Apache-2.0
// Small helpers of the tests that run under mpirun: ranks, communicators, statuses, variables.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "librun/librun.hpp"
#include "support/catch.hpp"
#include "support/device.hpp"
#include "support/model.hpp"
#include "support/wait_for.hpp"
#include "support/waiting.hpp"

/// CHECKs the status of a call, and shows the library's text when it is another one.
#define CHECK_STATUS(call, wanted)                                                              \
  do {                                                                                          \
    const librun_status_t status_of_call = (call);                                              \
    INFO(#call << ": " << librun_status_string(status_of_call) << ": " << librun_last_error()); \
    CHECK(status_of_call == (wanted));                                                          \
  } while (false)
#define CHECK_OK(call) CHECK_STATUS(call, LIBRUN_OK)

namespace librun_test {

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
inline int world_of(MPI_Comm comm) {
  int world = 0;
  MPI_Comm_size(comm, &world);
  return world;
}
inline int rank() { return rank_in(MPI_COMM_WORLD); }
inline int world() { return world_of(MPI_COMM_WORLD); }
inline void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline std::string last_error() { return librun_last_error(); }

/// Sets variables for as long as it lives; the library reads them when a communicator is created.
class ScopedEnv {
 public:
  ScopedEnv(std::initializer_list<std::pair<const char*, std::string>> variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name);
      old_[name] = old ? std::optional<std::string>(old) : std::nullopt;
      ::setenv(name, value.c_str(), 1);
    }
  }
  ~ScopedEnv() {
    for (const auto& [name, value] : old_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> old_;
};

inline librun::Config config_of(librun_algo_t algo, std::size_t arena_bytes = 0) {
  librun::Config config;
  config.algo = algo;
  config.arena_bytes = arena_bytes;
  return config;
}

/// Creates on all ranks of `comm`, or fails the test case.
inline librun::Communicator create(const librun_config_t& config = librun::Config{},
                                   MPI_Comm comm = MPI_COMM_WORLD) {
  try {
    return librun::Communicator(comm, config);
  } catch (const librun::Error& error) {
    FAIL(error.what());
    throw;
  }
}

/// One sum of pattern `k` over the ranks of `mpi`. "" when it is right, else what is wrong.
inline std::string sum_difference(librun_comm_t comm, std::uint64_t k, std::size_t count = 1000,
                                  MPI_Comm mpi = MPI_COMM_WORLD, void* stream = nullptr) {
  const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, count, rank_in(mpi), k);
  const DeviceBytes send(input.begin(), input.end());
  DeviceBytes recv(send.size());
  const librun_status_t status = all_reduce_and_wait(comm, send.data(), recv.data(), count,
                                                     LIBRUN_FLOAT32, LIBRUN_SUM, stream);
  if (status != LIBRUN_OK) return librun_status_string(status) + (": " + last_error());
  return first_difference(
      LIBRUN_FLOAT32, recv.data(),
      expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, count, world_of(mpi), k));
}
inline std::string sum_difference(const librun::Communicator& comm, std::uint64_t k,
                                  std::size_t count = 1000, MPI_Comm mpi = MPI_COMM_WORLD,
                                  void* stream = nullptr) {
  return sum_difference(comm.get(), k, count, mpi, stream);
}

/// Waits until the failure of some rank is known here too. A rank that closes before that makes a
/// call which the others do not make any more, and is told so.
inline bool hears_of_failure(const librun::Communicator& comm) {
  return wait_for([&] { return comm.state() == LIBRUN_FAILED_STATE; });
}

/// True when `value` is the same on all ranks. Collective.
inline bool same_on_all_ranks(std::uint64_t value) {
  std::uint64_t bounds[2] = {value, ~value};
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return bounds[0] == ~bounds[1];
}

}  // namespace librun_test
