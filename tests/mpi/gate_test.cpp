// SPDX-License-Identifier: Apache-2.0
// The gate: what eager calls and replays do while the communicator is suspended, has failed, or is
// in a transition on another thread.
#include <thread>

#include "support/job.hpp"

using namespace librun_test;

namespace {

constexpr std::size_t kCount = 5000;
constexpr float kUntouched = -7;

/// A call and a replay of it, on buffers that show whether they were touched.
struct Subject {
  librun::Communicator comm = create();
  Stream stream;
  DeviceVector<float> send = DeviceVector<float>(kCount, 1.0f);
  DeviceVector<float> recv = DeviceVector<float>(kCount, kUntouched);
  librun_graph_t graph = nullptr;

  Subject() {
    CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
    CHECK_OK(call());
    CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
    CHECK(all_recv_are(kUntouched));
  }
  ~Subject() {
    CHECK_OK(librun_graph_destroy(graph));
    CHECK_OK(librun_comm_close(comm.get()));
    barrier();
  }
  librun_status_t call() {
    return librun_all_reduce(comm.get(), send.data(), recv.data(), kCount, LIBRUN_FLOAT32,
                             LIBRUN_SUM, stream.get());
  }
  librun_status_t replay() { return librun_graph_launch(graph, stream.get()); }
  bool all_recv_are(float value) const {
    return std::count(recv.begin(), recv.end(), value) == static_cast<long>(kCount);
  }

  /// Both are refused at once and touch nothing.
  void check_refused(librun_status_t wanted, const char* word) {
    const auto start = std::chrono::steady_clock::now();
    CHECK_STATUS(call(), wanted);
    CHECK(contains(last_error(), word));
    CHECK_STATUS(replay(), wanted);
    CHECK(contains(last_error(), word));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
    CHECK(all_recv_are(kUntouched));
    CHECK(std::count(send.begin(), send.end(), 1.0f) == static_cast<long>(kCount));
  }
};

/// A call of this thread while another one is inside a transition that a late rank holds up.
struct Meeting {
  librun_status_t transition = LIBRUN_OK;
  librun_status_t call = LIBRUN_OK;
  std::string text;

  template <class Transition, class Call>
  Meeting(Transition make_transition, Call make_call) {
    std::thread other([&] { transition = make_transition(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    call = make_call();
    text = last_error();
    other.join();
  }
};

constexpr const char* kFaults[] = {"suspend_before_precheck", "suspend_before_close",
                                   "suspend_before_release", "suspend_after_release"};

}  // namespace

TEST_CASE("the gate while suspended, and open again after the resume") {
  Subject subject;
  CHECK(subject.comm.suspend());
  for (int time = 0; time < 3; ++time) subject.check_refused(LIBRUN_INVALID_STATE, "suspended");
  CHECK(subject.comm.resume());
  CHECK_OK(subject.replay());
  CHECK_OK(librun_synchronize(subject.comm.get(), subject.stream.get()));
  CHECK(subject.all_recv_are(static_cast<float>(world())));
}

TEST_CASE("the gate after a failure, active or suspended") {
  for (const bool suspended : {false, true}) {
    INFO(suspended);
    Subject subject;
    if (suspended) CHECK(subject.comm.suspend());
    barrier();
    if (rank() == 0) CHECK_OK(librun_abort(subject.comm.get(), "pump on fire"));
    if (suspended && rank() != 0)
      CHECK_STATUS(librun_resume(subject.comm.get(), -1), LIBRUN_FAILED);
    CHECK(hears_of_failure(subject.comm));
    subject.check_refused(LIBRUN_FAILED, "pump on fire");
  }
}

TEST_CASE("calls on another thread during a suspend are refused when it is over") {
  for (const char* fault : kFaults) {
    for (const bool replays : {false, true}) {
      INFO(fault << (replays ? ", replay" : ", call"));
      const ScopedEnv env{{"LIBRUN_FAULT", std::string(fault) + "@0:delay=400"}};
      Subject subject;
      barrier();
      const Meeting meeting([&] { return librun_suspend(subject.comm.get(), -1); },
                            [&] { return replays ? subject.replay() : subject.call(); });
      CHECK(meeting.transition == LIBRUN_OK);
      INFO(meeting.text);
      CHECK(meeting.call == LIBRUN_INVALID_STATE);
      CHECK(contains(meeting.text, "suspended"));
      CHECK(subject.all_recv_are(kUntouched));
    }
  }
}

TEST_CASE("calls on another thread during a resume run when it is over") {
  for (const char* fault : {"resume_before_precheck", "resume_before_open", "resume_after_prove"}) {
    for (const bool replays : {false, true}) {
      INFO(fault << (replays ? ", replay" : ", call"));
      const ScopedEnv env{{"LIBRUN_FAULT", std::string(fault) + "@0:delay=400"}};
      Subject subject;
      CHECK(subject.comm.suspend());
      barrier();
      const Meeting meeting([&] { return librun_resume(subject.comm.get(), -1); },
                            [&] { return replays ? subject.replay() : subject.call(); });
      CHECK(meeting.transition == LIBRUN_OK);
      INFO(meeting.text);
      CHECK(meeting.call == LIBRUN_OK);
      CHECK_OK(librun_synchronize(subject.comm.get(), subject.stream.get()));
      CHECK(subject.all_recv_are(static_cast<float>(world())));
    }
  }
}

TEST_CASE("calls on another thread during a suspend that fails get its cause") {
  for (const char* fault : kFaults) {
    INFO(fault);
    const std::string last = std::to_string(world() - 1);
    const ScopedEnv env{{"LIBRUN_FAULT", std::string(fault) + "@0:delay=400," + fault + "@" +
                                             (world() > 1 ? last : "99") + ":fail"}};
    Subject subject;
    barrier();
    const Meeting meeting([&] { return librun_suspend(subject.comm.get(), -1); },
                          [&] { return subject.call(); });
    CHECK(meeting.transition == LIBRUN_SYSTEM);
    INFO(meeting.text);
    CHECK(meeting.call == LIBRUN_FAILED);
    CHECK(contains(meeting.text, fault));
    CHECK(subject.all_recv_are(kUntouched));
  }
}

TEST_CASE("a rank that leaves right after a sum does not spoil the sum of the others") {
  if (on_cuda()) return;  // there the call is over only when its stream is, and the state counts
  for (const librun_algo_t algo :
       {LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED}) {
    for (int round = 0; round < 40; ++round) {
      INFO(librun_algo_name(algo) << ", round " << round);
      librun::Communicator comm = create(config_of(algo));
      DeviceVector<float> data(kCount, 1.0f);
      CHECK_OK(librun_all_reduce(comm.get(), data.data(), data.data(), kCount, LIBRUN_FLOAT32,
                                 LIBRUN_SUM, nullptr));
      const bool leaves = rank() == round % world();
      if (leaves && round % 2 == 0) CHECK_OK(librun_abort(comm.get(), "enough"));
      if (leaves) comm = librun::Communicator();
      CHECK(std::count(data.begin(), data.end(), static_cast<float>(world())) ==
            static_cast<long>(kCount));
      barrier();
      if (leaves) continue;
      CHECK(hears_of_failure(comm));
      CHECK_OK(librun_comm_close(comm.get()));
    }
  }
}
