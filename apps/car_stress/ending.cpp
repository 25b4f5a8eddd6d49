// SPDX-License-Identifier: Apache-2.0
#include "car_stress/ending.hpp"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "common/exit_codes.hpp"

namespace car::stress {
namespace {

constexpr std::chrono::seconds kGoodbye{2};
constexpr std::chrono::milliseconds kLetOthersPrint{400};

}  // namespace

int exit_code_of(const librun::Error& error, const Options& options, bool at_start) {
  const std::string text = error.what();
  if (!options.expected_failure.empty())
    return text.find(options.expected_failure) != std::string::npos ? kExitOk : kExitFailure;
  const bool unusable =
      error.code() == LIBRUN_UNSUPPORTED || error.code() == LIBRUN_INVALID_ARGUMENT;
  if (at_start && unusable) return kExitEnvironment;
  return error.code() == LIBRUN_TIMEOUT ? kExitTimeout : kExitFailure;
}

bool everyone_is_here(MPI_Comm comm) {
  MPI_Request request{};
  if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return false;
  const auto end = std::chrono::steady_clock::now() + kGoodbye;
  for (int done = 0; std::chrono::steady_clock::now() < end; sched_yield()) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done) return true;
  }
  return false;
}

void leave_alone(int exit_code) {
  std::fflush(nullptr);
  std::this_thread::sleep_for(kLetOthersPrint);
  _exit(exit_code);
}

}  // namespace car::stress
