// SPDX-License-Identifier: Apache-2.0
// Suspend and resume: repeats, rejections, other communicators, many cycles, what is held.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/job.hpp"
#include "support/proc_self.hpp"

using namespace librun_test;

namespace {

std::uint64_t peers() { return static_cast<std::uint64_t>(world() - 1); }

/// Without what hinders a checkpoint on this machine whatever librun does: MPS, an old driver.
int blocker_count() {
  const auto blockers = librun::checkpoint_blockers();
  int count = -1;
  CHECK_OK(librun_checkpoint_blockers(nullptr, 0, &count));
  CHECK(static_cast<std::size_t>(count) == blockers.size());
  return static_cast<int>(std::ranges::count_if(blockers, [](const std::string& blocker) {
    return contains(blocker, "communicator") || contains(blocker, "mapping");
  }));
}

/// MPI_COMM_WORLD with the ranks in the opposite order.
MPI_Comm reversed_world() {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world() - rank(), &reversed);
  return reversed;
}

}  // namespace

TEST_CASE("B37 repeats are successes that do nothing") {
  librun::Communicator comm = create();
  CHECK_OK(librun_suspend(comm.get(), -1));
  CHECK_STATUS(librun_suspend(comm.get(), -1), LIBRUN_ALREADY_THERE);
  CHECK_OK(librun_resume(comm.get(), -1));
  CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_ALREADY_THERE);
  CHECK(comm.stats().suspends == 1);
  CHECK(comm.stats().generation == 1);
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("what is mapped and what blocks a checkpoint") {
  CHECK(blocker_count() == 0);
  librun::Communicator comm = create();
  CHECK(comm.stats().open_mappings == peers());
  CHECK(comm.mappings().size() == peers());
  CHECK(comm.stats().segments == 1);
  CHECK(comm.stats().segment_bytes > 0);
  CHECK(blocker_count() >= 1 + static_cast<int>(peers()));

  CHECK(comm.suspend());
  CHECK(comm.stats().open_mappings == 0);
  CHECK(comm.stats().mapped_bytes == 0);
  CHECK(comm.stats().segment_bytes == 0);
  CHECK(comm.mappings().empty());
  CHECK(blocker_count() == 0);
  CHECK(process_holdings().shared_segments == 0);

  CHECK(comm.resume());
  CHECK(comm.stats().open_mappings == peers());
  CHECK(sum_difference(comm, 2) == "");
  CHECK_OK(librun_comm_close(comm.get()));
  CHECK(blocker_count() == 0);
}

TEST_CASE("stats count calls, and phases are named and timed") {
  librun::Communicator comm = create();
  const std::uint64_t before = comm.stats().calls;
  for (std::uint64_t k = 0; k < 5; ++k) CHECK(sum_difference(comm, k) == "");
  CHECK(comm.stats().calls == before + 5);
  CHECK(comm.stats().rank == rank());
  CHECK(comm.stats().world == world());
  CHECK(comm.suspend());
  CHECK(comm.resume());
  for (const auto transition :
       {LIBRUN_TRANSITION_CREATE, LIBRUN_TRANSITION_SUSPEND, LIBRUN_TRANSITION_RESUME}) {
    const auto phases = comm.phases(transition);
    CHECK(phases.size() >= 3);
    for (const librun_phase_t& phase : phases) CHECK(std::string(phase.name) != "");
  }
  CHECK(comm.stats().last_suspend_us > 0);
  CHECK(comm.stats().last_resume_us > 0);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("resume on another communicator of the same ranks") {
  librun::Communicator comm = create();
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  CHECK(comm.suspend());
  CHECK_OK(librun_resume_on(comm.get(), duplicate, -1));
  MPI_Comm_free(&duplicate);
  CHECK(sum_difference(comm, 3) == "");
  CHECK(comm.suspend());
  CHECK(comm.resume());
  CHECK(sum_difference(comm, 4) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("resume with the ranks in another order is rejected, and can be repeated") {
  if (world() == 1) return;  // one rank has one order
  librun::Communicator comm = create();
  CHECK(comm.suspend());
  MPI_Comm reversed = reversed_world();
  CHECK_STATUS(librun_resume_on(comm.get(), reversed, -1), LIBRUN_REJECTED);
  CHECK(contains(last_error(), "same order"));
  CHECK_STATUS(librun_resume_on(comm.get(), MPI_COMM_SELF, -1), LIBRUN_REJECTED);
  CHECK_STATUS(librun_resume_on(comm.get(), MPI_COMM_NULL, -1), LIBRUN_INVALID_ARGUMENT);
  MPI_Comm_free(&reversed);
  CHECK(comm.state() == LIBRUN_SUSPENDED);
  CHECK_OK(librun_resume(comm.get(), -1));
  CHECK(sum_difference(comm, 5) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("suspend during an open capture is rejected on all ranks and the capture goes on") {
  librun::Communicator comm = create();
  const int last = world() - 1;
  const Stream stream;
  DeviceValue<float> value(1);
  DeviceValue<float> sum(0);
  const auto all_reduce = [&] {
    return librun_all_reduce(comm.get(), value.at(), sum.at(), 1, LIBRUN_FLOAT32, LIBRUN_SUM,
                             stream.get());
  };
  librun_graph_t graph{};
  if (rank() == last) CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
  CHECK_STATUS(librun_suspend(comm.get(), -1), LIBRUN_REJECTED);
  CHECK(contains(last_error(), "rank " + std::to_string(last)));
  CHECK(contains(last_error(), "capture"));
  if (rank() == last) CHECK_OK(all_reduce());
  CHECK(*sum == 0);
  if (rank() == last) {
    CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
    CHECK_OK(launch_and_wait(comm.get(), graph, stream.get()));
    CHECK_OK(librun_graph_destroy(graph));
  } else {
    CHECK_OK(all_reduce());
    CHECK_OK(librun_synchronize(comm.get(), stream.get()));
  }
  CHECK(*sum == static_cast<float>(world()));
  CHECK_OK(librun_suspend(comm.get(), -1));
  CHECK_OK(librun_resume(comm.get(), -1));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("an abort on one rank fails all, and every use names the first cause") {
  librun::Communicator comm = create();
  barrier();
  if (rank() == world() - 1) CHECK_OK(librun_abort(comm.get(), "pump on fire"));
  CHECK(hears_of_failure(comm));
  const std::string culprit = "rank " + std::to_string(world() - 1);
  for (int use = 0; use < 3; ++use) {
    const std::string text = sum_difference(comm, 1);
    INFO(text);
    CHECK(contains(text, "pump on fire"));
    CHECK(contains(text, culprit));
  }
  CHECK_STATUS(librun_suspend(comm.get(), -1), LIBRUN_FAILED);
  CHECK_OK(librun_comm_close(comm.get()));
  CHECK(comm.state() == LIBRUN_CLOSED);
}

TEST_CASE("an abort while suspended is what the peers' resume ends with, at once") {
  librun::Communicator comm = create();
  CHECK(comm.suspend());
  barrier();
  const auto start = std::chrono::steady_clock::now();
  if (rank() == world() - 1) {
    CHECK_OK(librun_abort(comm.get(), "pump on fire"));
  } else {
    CHECK(librun_resume(comm.get(), 20000) != LIBRUN_OK);
    CHECK(contains(last_error(), "pump on fire"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  }
  CHECK(comm.state() == LIBRUN_FAILED_STATE);
  CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_FAILED);
  CHECK_OK(librun_comm_close(comm.get()));
  barrier();
}

TEST_CASE("an abort from another thread during a resume fails it on all ranks") {
  for (const char* phase : {"resume_before_hello", "resume_after_table", "resume_after_prove"}) {
    INFO(phase);
    const ScopedEnv env{{"LIBRUN_FAULT", std::string(phase) + "@0:delay=400"}};
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    std::thread aborter;
    if (rank() == world() - 1)
      aborter = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        librun_abort(comm.get(), "pump on fire");
      });
    CHECK(librun_resume(comm.get(), 20000) != LIBRUN_OK);
    CHECK(contains(last_error(), "pump on fire"));
    if (aborter.joinable()) aborter.join();
    CHECK(comm.state() == LIBRUN_FAILED_STATE);
    CHECK(contains(sum_difference(comm, 1), "pump on fire"));
    CHECK_OK(librun_comm_close(comm.get()));
    barrier();
  }
}

TEST_CASE("resume_on with different librun communicators is rejected, and can be repeated") {
  if (world() == 1) return;  // one rank agrees with itself
  librun::Communicator first = create();
  librun::Communicator second = create();
  CHECK_OK(librun_suspend_all(-1));
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  const bool odd = rank() == world() - 1;
  CHECK_STATUS(librun_resume_on(odd ? second.get() : first.get(), duplicate, -1), LIBRUN_REJECTED);
  CHECK(contains(last_error(), "rank " + std::to_string(world() - 1)));
  CHECK_OK(librun_resume_on(first.get(), duplicate, -1));
  CHECK_OK(librun_resume(second.get(), -1));
  MPI_Comm_free(&duplicate);
  CHECK(sum_difference(first, 11) == "");
  CHECK(sum_difference(second, 12) == "");
  CHECK_OK(librun_comm_close(first.get()));
  CHECK_OK(librun_comm_close(second.get()));
}

TEST_CASE("close while suspended") {
  librun::Communicator comm = create();
  CHECK(comm.suspend());
  CHECK_OK(librun_comm_close(comm.get()));
  CHECK(comm.state() == LIBRUN_CLOSED);
}

TEST_CASE("two communicators are suspended and resumed in one transition") {
  librun::Communicator first = create();
  librun::Communicator second = create(config_of(LIBRUN_ALGO_TWO_SHOT));
  CHECK_OK(librun_suspend_all(-1));
  CHECK(first.state() == LIBRUN_SUSPENDED);
  CHECK(second.state() == LIBRUN_SUSPENDED);
  CHECK_STATUS(librun_suspend_all(-1), LIBRUN_ALREADY_THERE);
  CHECK_OK(librun_resume_all(-1));
  CHECK_STATUS(librun_resume_all(-1), LIBRUN_ALREADY_THERE);
  CHECK(sum_difference(first, 6) == "");
  CHECK(sum_difference(second, 7) == "");

  // One that cannot be suspended keeps all of them active.
  const Stream stream;
  if (rank() == 0) CHECK_OK(librun_graph_begin(second.get(), stream.get()));
  CHECK_STATUS(librun_suspend_all(-1), LIBRUN_REJECTED);
  CHECK(first.state() == LIBRUN_ACTIVE);
  CHECK(second.state() == LIBRUN_ACTIVE);
  CHECK(sum_difference(first, 8) == "");
  librun_graph_t graph{};
  if (rank() == 0) CHECK_OK(librun_graph_end(second.get(), stream.get(), &graph));
  if (rank() == 0) CHECK_OK(librun_graph_destroy(graph));

  // One that is suspended already does not hinder the other.
  CHECK(first.suspend());
  CHECK_OK(librun_suspend_all(-1));
  CHECK_OK(librun_resume_all(-1));
  CHECK(sum_difference(first, 9) == "");
  CHECK_OK(librun_comm_close(first.get()));
  CHECK_OK(librun_comm_close(second.get()));
}

TEST_CASE("B37 a hundred cycles leave descriptors, threads and mappings as they were") {
  librun::Communicator comm = create();
  const auto cycle = [&](std::uint64_t k) {
    CHECK(comm.suspend());
    CHECK(comm.resume());
    CHECK(sum_difference(comm, k) == "");
  };
  for (std::uint64_t k = 0; k < 10; ++k) cycle(k);
  const ProcessHoldings before = process_holdings();
  const long mappings_before = mapping_count();
  for (std::uint64_t k = 0; k < 100; ++k) cycle(k);
  const ProcessHoldings after = process_holdings();
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.shared_segments == before.shared_segments);
  // The allocator's own come and go by a few; one left behind in each cycle would be a hundred.
  CHECK(mapping_count() < mappings_before + 50);
  CHECK(comm.stats().generation == 110);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("create and close leave nothing behind") {
  const auto round = [](std::uint64_t k) {
    librun::Communicator comm = create();
    CHECK(sum_difference(comm, k) == "");
    CHECK_OK(librun_comm_close(comm.get()));
  };
  for (std::uint64_t k = 0; k < 3; ++k) round(k);
  const ProcessHoldings before = process_holdings();
  for (std::uint64_t k = 0; k < 20; ++k) round(k);
  CHECK(process_holdings().descriptors == before.descriptors);
  // The driver of a GPU has threads of its own, which come and go.
  if (!on_cuda()) CHECK(process_holdings().threads == before.threads);
  CHECK(process_holdings().shared_segments == 0);
}

// The host's recordings hold none, whatever the setting.
TEST_CASE("launches that hold pointers refuse a suspend, which harms nothing") {
  librun::Communicator comm = create();
  {
    // On one rank only: all must hear of it.
    const ScopedEnv env{{"LIBRUN_BAKED_POINTERS", rank() == world() - 1 ? "1" : "0"}};
    comm.begin_graph(nullptr);
    comm.end_graph(nullptr);
  }
  if (on_cuda()) {
    CHECK_STATUS(librun_suspend(comm.get(), -1), LIBRUN_UNSUPPORTED);
    CHECK(contains(last_error(), "LIBRUN_BAKED_POINTERS"));
    CHECK(comm.state() == LIBRUN_ACTIVE);
  } else {
    CHECK(comm.suspend());
    CHECK(comm.resume());
  }
  CHECK(sum_difference(comm, 11) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a suspend that one rank is asked for by a signal is known to all at the next question") {
  librun::Communicator comm = create();
  CHECK_FALSE(comm.suspend_requested());
  for (int asked = 0; asked < world(); ++asked) {
    INFO("rank " << asked);
    const auto before = std::signal(SIGUSR1, [](int) { librun_request_suspend(); });
    if (rank() == asked) CHECK(::raise(SIGUSR1) == 0);
    std::signal(SIGUSR1, before);
    CHECK(comm.suspend_requested());
    CHECK_FALSE(comm.suspend_requested());
  }
  CHECK(comm.suspend());
  // A signal that reaches this rank later than its peers.
  librun::request_suspend();
  int requested = 7;
  CHECK_STATUS(librun_suspend_requested(comm.get(), &requested), LIBRUN_INVALID_STATE);
  CHECK(requested == 7);
  CHECK(comm.resume());
  CHECK_FALSE(comm.suspend_requested());
  CHECK(sum_difference(comm, 12) == "");
  CHECK_STATUS(librun_suspend_requested(comm.get(), nullptr), LIBRUN_INVALID_ARGUMENT);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a question that one rank does not ask ends at the deadline") {
  if (world() == 1) return;  // it asks itself
  const ScopedEnv env{{"LIBRUN_TIMEOUT_MS", "500"}};
  librun::Communicator comm = create();
  int requested = 0;
  if (rank() != 0) {
    CHECK(librun_suspend_requested(comm.get(), &requested) != LIBRUN_OK);
    CHECK(contains(last_error(), "rank 0"));
  }
  CHECK(hears_of_failure(comm));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B51 a forked child is turned away and harms nothing") {
  librun::Communicator comm = create();
  DeviceValue<float> value(1);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool refused = librun_all_reduce(comm.get(), value.at(), value.at(), 1, LIBRUN_FLOAT32,
                                           LIBRUN_SUM, nullptr) == LIBRUN_INVALID_STATE &&
                         contains(last_error(), "another process") &&
                         librun_abort(comm.get(), "no") == LIBRUN_INVALID_STATE;
    librun_comm_destroy(comm.get());
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(sum_difference(comm, 10) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}
