// SPDX-License-Identifier: Apache-2.0
// Injected faults: every phase, on every rank the same error that names the phase and the rank.
#include <unistd.h>

#include <thread>

#include "support/job.hpp"
#include "support/proc_self.hpp"

using namespace librun_test;

namespace {

constexpr int kCulprit = 1;
/// In some phases the others wait for the culprit in vain before they are told.
const std::pair<const char*, std::string> kShortDeadline{"LIBRUN_TIMEOUT_MS", "4000"};

std::string fault_at(const std::string& point, const std::string& action, int at = kCulprit) {
  return point + "@" + std::to_string(at) + ":" + action;
}

/// The same text on all ranks that names rank and point, apart from who tells it.
void check_error(librun_status_t status, const std::string& point) {
  const std::string text = last_error();
  INFO(librun_status_string(status) << ": " << text);
  CHECK(status != LIBRUN_OK);
  CHECK(contains(text, "rank " + std::to_string(kCulprit)));
  CHECK(contains(text, point));
  CHECK(same_on_all_ranks(static_cast<std::uint64_t>(status)));
}

/// The point without its call: "before_hello" of "create_before_hello".
std::vector<std::string> points(const std::string& call,
                                std::initializer_list<const char*> phases) {
  std::vector<std::string> all;
  for (const char* phase : phases)
    for (const char* side : {"_before_", "_after_"}) all.push_back(call + side + phase);
  return all;
}

}  // namespace

TEST_CASE("create fails alike on all ranks, in whatever phase") {
  const ProcessHoldings before = process_holdings();
  for (const std::string& point :
       points("create", {"hello", "connect", "exchange", "open", "table", "prove", "selftest"})) {
    INFO(point);
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at(point, "fail")}, kShortDeadline};
    librun_comm_t handle{};
    const librun_status_t status = librun_comm_create(MPI_COMM_WORLD, nullptr, &handle);
    check_error(status, point);
    CHECK(handle == nullptr);
  }
  CHECK(process_holdings().shared_segments == before.shared_segments);
  // The driver of a GPU has threads of its own, which come and go.
  if (!on_cuda()) CHECK(process_holdings().threads == before.threads);
  librun::Communicator comm = create();
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("suspend fails alike on all ranks, in whatever phase, and that is terminal") {
  for (const std::string& point : points("suspend", {"precheck", "close", "release"})) {
    INFO(point);
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at(point, "fail")}};
    librun::Communicator comm = create();
    CHECK(sum_difference(comm, 1) == "");
    barrier();  // nobody is still waiting for that sum
    check_error(librun_suspend(comm.get(), -1), point);
    CHECK(comm.state() == LIBRUN_FAILED_STATE);
    CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_FAILED);
    CHECK(contains(last_error(), point));
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("B37 resume fails alike on all ranks, in whatever phase, and that is terminal") {
  for (const std::string& point :
       points("resume", {"hello", "connect", "exchange", "open", "table", "prove"})) {
    INFO(point);
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at(point, "fail")}, kShortDeadline};
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    check_error(librun_resume(comm.get(), -1), point);
    CHECK(comm.state() == LIBRUN_FAILED_STATE);
    CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_FAILED);
    CHECK(contains(last_error(), point));
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("B35 export and import that fail") {
  for (const char* point : {"ipc_export", "ipc_open"}) {
    INFO(point);
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at(point, "fail")}};
    librun_comm_t handle{};
    const librun_status_t status = librun_comm_create(MPI_COMM_WORLD, nullptr, &handle);
    check_error(status, point);
  }
}

TEST_CASE("close ends locally when its agreement fails") {
  const ScopedEnv env{{"LIBRUN_FAULT", fault_at("close_before_agree", "fail")}};
  librun::Communicator comm = create();
  check_error(librun_comm_close(comm.get()), "close_before_agree");
  CHECK_OK(librun_comm_close(comm.get()));
  CHECK(comm.state() == LIBRUN_CLOSED);
}

TEST_CASE("a mapping that leads elsewhere is caught by the proof") {
  const ScopedEnv env{{"LIBRUN_FAULT", fault_at("resume_after_open", "corrupt")}};
  librun::Communicator comm = create();
  CHECK(comm.suspend());
  const librun_status_t status = librun_resume(comm.get(), -1);
  const std::string text = last_error();
  INFO(librun_status_string(status) << ": " << text);
  CHECK(status != LIBRUN_OK);
  CHECK(contains(text, "prove"));
  CHECK(contains(text, "rank "));
  CHECK(comm.state() == LIBRUN_FAILED_STATE);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE(
    "an old graph on one rank meets a new call on the others, whatever a resume has changed") {
  for (const char* const algo : {"ll", "one_shot", "two_shot"}) {
    // The second bring-up leaves each rank less of the GPU.
    const ScopedEnv env{{"LIBRUN_ALGO", algo},
                        {"LIBRUN_FAULT", "crowd@" + std::to_string(rank()) + "#2:corrupt"}};
    librun::Communicator comm = create();
    const Stream stream;
    for (const std::size_t count : {900, 3000, 24000, 100000}) {
      INFO(algo << ", " << count << " elements");
      const int on_graph = static_cast<int>(count / 100) % world();
      DeviceVector<std::int32_t> data(count);
      comm.begin_graph(stream.get());
      comm.all_reduce(data.data(), data.data(), count, LIBRUN_SUM, stream.get());
      librun::Graph graph = comm.end_graph(stream.get());
      CHECK(comm.suspend());
      CHECK(comm.resume());
      for (int round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < count; ++i)
          data[i] = static_cast<std::int32_t>(i % 1021) * (rank() + 1) + round;
        if (rank() == on_graph)
          graph.launch(stream.get());
        else
          comm.all_reduce(data.data(), data.data(), count, LIBRUN_SUM, stream.get());
        comm.synchronize(stream.get());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)
          wrong += data[i] != static_cast<std::int32_t>(i % 1021) * world() * (world() + 1) / 2 +
                                  round * world();
        CHECK(wrong == 0);
      }
    }
    comm.close();
  }
}

TEST_CASE("B08 resume returns only when the peers have done their half") {
  const ScopedEnv env{{"LIBRUN_FAULT", fault_at("resume_before_open", "delay=100")}};
  librun::Communicator comm = create();
  const Stream stream;
  DeviceValue<float> value(1);
  DeviceValue<float> sum(0);
  comm.begin_graph(stream.get());
  comm.all_reduce(value.at(), sum.at(), 1, LIBRUN_SUM, stream.get());
  librun::Graph graph = comm.end_graph(stream.get());
  for (std::uint64_t k = 0; k < 5; ++k) {
    CHECK(comm.suspend());
    CHECK(comm.resume());
    CHECK(sum_difference(comm, k) == "");
    launch_and_wait(comm, graph, stream.get());
    CHECK(*sum == static_cast<float>(world()));
  }
  comm.close();
}

TEST_CASE("B08 suspend returns only when the peers have unmapped") {
  if (on_cuda()) return;  // what another process maps on a GPU cannot be seen from here
  std::vector<pid_t> pids(static_cast<std::size_t>(world()));
  const pid_t mine = ::getpid();
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, pids.data(), sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
  const auto held_by_all = [&] {
    long segments = 0;
    for (const pid_t pid : pids) segments += shared_segments_of(std::to_string(pid));
    return segments;
  };
  for (const char* point : {"suspend_before_close", "suspend_before_release"}) {
    INFO(point);
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at(point, "delay=200")}};
    librun::Communicator comm = create();
    CHECK(held_by_all() >= world() * world());
    barrier();
    CHECK(comm.suspend());
    CHECK(held_by_all() == 0);  // at this moment, in every process
    barrier();
    CHECK(comm.resume());
    CHECK(sum_difference(comm, 1) == "");
    comm.close();
  }
}

TEST_CASE("B30 the first call after create and resume, with one rank late") {
  for (int round = 0; round < 40; ++round) {
    const int late = round % world();
    const ScopedEnv env{{"LIBRUN_FAULT", fault_at("create_after_exchange", "delay=20", late) + "," +
                                             fault_at("resume_after_open", "delay=20", late)}};
    librun::Communicator comm = create();
    const auto k = static_cast<std::uint64_t>(round);
    CHECK(sum_difference(comm, k, 4) == "");
    CHECK(comm.suspend());
    CHECK(comm.resume());
    CHECK(sum_difference(comm, k + 1, 4) == "");
    comm.close();
  }
}

TEST_CASE("B04 results stay right when one rank publishes or reads late") {
  const ScopedEnv env{{"LIBRUN_FAULT", fault_at("before_publish", "delay=2") + "," +
                                           fault_at("after_read", "delay=2", 0)}};
  for (const librun_algo_t algo :
       {LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED}) {
    INFO(librun_algo_name(algo));
    librun::Communicator comm = create(config_of(algo, 64 << 10));
    DeviceVector<std::int32_t> data(3000);
    for (int k = 0; k < 10; ++k) {
      // The input is overwritten as soon as the call is back.
      std::fill(data.begin(), data.end(), k + rank());
      all_reduce_and_wait(comm, data.data(), data.data(), data.size());
      const int expected = world() * k + world() * (world() - 1) / 2;
      CHECK(std::count(data.begin(), data.end(), expected) == 3000);
      std::fill(data.begin(), data.end(), -1);
    }
    comm.close();
  }
}

TEST_CASE("B06 a rank that does not come is named, and gets the same error when it does") {
  librun::Communicator comm = create();
  if (rank() != kCulprit) {
    CHECK_STATUS(librun_suspend(comm.get(), 500), LIBRUN_TIMEOUT);
    CHECK(contains(last_error(), "rank 1"));
    CHECK(comm.state() == LIBRUN_FAILED_STATE);
  }
  barrier();
  if (rank() == kCulprit) {
    const librun_status_t status = librun_suspend(comm.get(), -1);
    INFO(last_error());
    CHECK(status != LIBRUN_OK);
    CHECK(contains(last_error(), "rank 1"));
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B06 suspend on some ranks and resume on others") {
  librun::Communicator comm = create();
  const librun_status_t status =
      rank() == kCulprit ? librun_resume(comm.get(), 3000) : librun_suspend(comm.get(), 3000);
  INFO(last_error());
  CHECK(status != LIBRUN_OK);
  CHECK(contains(last_error(), "suspend"));
  CHECK(contains(last_error(), "resume"));
  CHECK(comm.state() == LIBRUN_FAILED_STATE);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B06 all_reduce on one rank and suspend on the others") {
  const ScopedEnv env{{"LIBRUN_CALL_TIMEOUT_MS", "700"}};
  librun::Communicator comm = create();
  if (rank() == kCulprit) {
    CHECK(sum_difference(comm, 1) != "");
  } else {
    CHECK(librun_suspend(comm.get(), 700) != LIBRUN_OK);
    CHECK(contains(last_error(), "rank 1"));
  }
  CHECK(hears_of_failure(comm));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B06 a late rank within the deadline is no error") {
  librun::Communicator comm = create();
  if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(700));
  CHECK_OK(librun_suspend(comm.get(), 10000));
  CHECK_OK(librun_resume(comm.get(), 10000));
  CHECK(sum_difference(comm, 1) == "");
  comm.close();
}

TEST_CASE("an all_reduce that one rank never makes ends at the deadline") {
  const ScopedEnv env{{"LIBRUN_CALL_TIMEOUT_MS", "400"}};
  librun::Communicator comm = create();
  if (rank() != kCulprit) {
    const std::string text = sum_difference(comm, 1);
    INFO(text);
    CHECK(contains(text, "rank 1"));
  }
  CHECK(hears_of_failure(comm));
  CHECK_OK(librun_comm_close(comm.get()));
}
