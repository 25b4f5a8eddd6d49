// SPDX-License-Identifier: Apache-2.0
// A capture of another communicator, which counts where launches do not wait in the calling thread:
// here it is counted by hand, so that the host shows what is done for GPUs. The one test of this
// folder under mpirun, hence its own main().
#define CATCH_CONFIG_RUNNER
#include <mpi.h>

#include <chrono>
#include <optional>
#include <thread>

#include "librun/librun.h"
#include "runtime/communicator.hpp"
#include "support/catch.hpp"
#include "support/proc_self.hpp"
#include "support/wait_for.hpp"

using namespace librun;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

std::shared_ptr<Communicator> create(const char* fault = "") {
  ::setenv("LIBRUN_FAULT", fault, 1);
  auto made = Communicator::create(MPI_COMM_WORLD, [] {
    librun_config_t config{};
    librun_config_init(&config);
    config.device = LIBRUN_DEVICE_HOST;
    return config;
  });
  ::unsetenv("LIBRUN_FAULT");
  return made;
}

long mapped() { return librun_test::shared_segments_of("self"); }

}  // namespace

TEST_CASE("a close after a failure waits for a capture, and then leaves nothing mapped") {
  const long before = mapped();
  auto comm = create();
  CHECK(mapped() > before);
  MPI_Barrier(MPI_COMM_WORLD);
  comm->abort("on purpose");
  REQUIRE(librun_test::wait_for([&] { return comm->state() == LIBRUN_FAILED_STATE; }));
  captures::Counted capture = captures::open(Clock::now());
  REQUIRE(capture);
  std::thread other([&] {
    std::this_thread::sleep_for(200ms);
    capture.reset();
  });
  comm->close();
  other.join();
  CHECK(mapped() == before);
}

// A second's delay stands behind the agreement that no capture is open; the capture comes in the
// middle of it.
TEST_CASE("a close waits for a capture that came after the agreement, and leaves nothing mapped") {
  const long before = mapped();
  auto comm = create("close_before_drain@0:delay=1000,close_before_drain@1:delay=1000");
  MPI_Barrier(MPI_COMM_WORLD);
  std::thread other([] {
    std::this_thread::sleep_for(500ms);
    const captures::Counted capture = captures::open(Clock::now());
    std::this_thread::sleep_for(1000ms);
  });
  const auto start = Clock::now();
  comm->close();
  CHECK(Clock::now() - start > 1400ms);
  other.join();
  CHECK(mapped() == before);
}

TEST_CASE("an abort ends the wait of a suspend for a capture") {
  auto comm = create("suspend_before_close@0:delay=1000,suspend_before_close@1:delay=1000");
  std::optional<captures::Counted> capture;
  MPI_Barrier(MPI_COMM_WORLD);
  std::thread other([&] {
    std::this_thread::sleep_for(500ms);
    capture = captures::open(Clock::now());
    std::this_thread::sleep_for(1000ms);
    comm->abort("on purpose");
  });
  const auto start = Clock::now();
  CHECK_THROWS_AS(comm->suspend(20000), Error);
  CHECK(Clock::now() - start < 6s);  // half of the timeout is 10 s
  other.join();
  CHECK(comm->state() == LIBRUN_FAILED_STATE);
  capture.reset();
  comm->close();
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int failed = Catch::Session().run(argc, argv);
  MPI_Finalize();
  return failed;
}
