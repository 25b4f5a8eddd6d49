// SPDX-License-Identifier: Apache-2.0
// Every state x every call: the status, the text, and the state afterwards.
#include <functional>

#include "support/job.hpp"

using namespace librun_test;

namespace {

/// A communicator with all that the calls need, made while it was active.
struct Subject {
  librun::Communicator comm = create();
  void* memory = comm.allocate(4096);
  librun_buffer_t buffer = comm.register_buffer(memory, 4096);
  librun_graph_t graph = nullptr;
  Stream stream;
  DeviceValue<float> value{1};
  DeviceValue<float> sum{0};

  Subject() {
    CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
    CHECK_OK(all_reduce());
    CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  }
  ~Subject() {
    CHECK_OK(librun_graph_destroy(graph));
    CHECK_OK(librun_comm_close(comm.get()));
  }
  librun_status_t all_reduce() {
    return librun_all_reduce(comm.get(), value.at(), sum.at(), 1, LIBRUN_FLOAT32, LIBRUN_SUM,
                             stream.get());
  }
  librun_status_t wait() { return librun_synchronize(comm.get(), stream.get()); }
  librun_status_t register_again() {
    librun_buffer_t again{};
    return librun_register(comm.get(), memory, 4096, &again);
  }

  void enter(librun_state_t state) {
    switch (state) {
      case LIBRUN_SUSPENDED:
        CHECK_OK(librun_suspend(comm.get(), -1));
        break;
      case LIBRUN_CLOSED:
        CHECK_OK(librun_comm_close(comm.get()));
        break;
      case LIBRUN_FAILED_STATE:
        barrier();
        if (rank() == 0) CHECK_OK(librun_abort(comm.get(), "the test says so"));
        CHECK(hears_of_failure(comm));
        barrier();
        break;
      default:
        break;
    }
    REQUIRE(comm.state() == state);
  }
};

struct Row {
  const char* name;
  std::function<librun_status_t(Subject&)> call;
  librun_status_t active, suspended, failed, closed;
  bool runs = false;  ///< an active communicator is busy afterwards
};

template <class T>
librun_status_t ignore_output(librun_status_t (*call)(librun_comm_t, T*), Subject& subject) {
  T out{};
  if constexpr (requires { out.struct_size; }) out.struct_size = sizeof(out);
  return call(subject.comm.get(), &out);
}

constexpr auto kOk = LIBRUN_OK;
constexpr auto kThere = LIBRUN_ALREADY_THERE;
constexpr auto kState = LIBRUN_INVALID_STATE;
constexpr auto kFailed = LIBRUN_FAILED;

const Row kRows[] = {
    {"all_reduce", [](Subject& s) { return s.all_reduce(); }, kOk, kState, kFailed, kState, true},
    {"register", [](Subject& s) { return s.register_again(); }, kOk, kState, kFailed, kState},
    {"unregister", [](Subject& s) { return librun_unregister(s.comm.get(), s.buffer); }, kOk, kOk,
     kOk, kState},
    {"graph_begin", [](Subject& s) { return librun_graph_begin(s.comm.get(), s.stream.get()); },
     kOk, kState, kFailed, kState},
    {"graph_end without a begin",
     [](Subject& s) {
       librun_graph_t graph{};
       return librun_graph_end(s.comm.get(), s.stream.get(), &graph);
     },
     kState, kState, kFailed, kState},
    {"graph_launch", [](Subject& s) { return librun_graph_launch(s.graph, s.stream.get()); }, kOk,
     kState, kFailed, kState, true},
    {"malloc",
     [](Subject& s) {
       void* memory = nullptr;
       return librun_malloc(s.comm.get(), 100, &memory);
     },
     kOk, kOk, kFailed, kState},
    {"free", [](Subject& s) { return librun_free(s.comm.get(), nullptr); }, kOk, kOk, kOk, kOk},
    {"synchronize", [](Subject& s) { return s.wait(); }, kOk, kOk, kFailed, kState},
    {"plan",
     [](Subject& s) {
       librun_plan_t plan{};
       plan.struct_size = sizeof(plan);
       return librun_comm_plan(s.comm.get(), 1000, LIBRUN_FLOAT32, LIBRUN_SUM, &plan);
     },
     kOk, kOk, kFailed, kState},
    {"suspend", [](Subject& s) { return librun_suspend(s.comm.get(), -1); }, kOk, kThere, kFailed,
     kState},
    {"resume", [](Subject& s) { return librun_resume(s.comm.get(), -1); }, kThere, kOk, kFailed,
     kState},
    {"resume_on", [](Subject& s) { return librun_resume_on(s.comm.get(), MPI_COMM_WORLD, -1); },
     kThere, kOk, kFailed, kState},
    {"abort", [](Subject& s) { return librun_abort(s.comm.get(), "again"); }, kOk, kOk, kOk, kOk},
    {"check", [](Subject& s) { return librun_check(s.comm.get()); }, kOk, kOk, kFailed, kOk},
    {"close", [](Subject& s) { return librun_comm_close(s.comm.get()); }, kOk, kOk, kOk, kOk},
    {"state", [](Subject& s) { return ignore_output(librun_comm_state, s); }, kOk, kOk, kOk, kOk},
    {"stats", [](Subject& s) { return ignore_output(librun_comm_stats, s); }, kOk, kOk, kOk, kOk},
};

librun_status_t wanted(const Row& row, librun_state_t state) {
  const librun_status_t by_state[] = {row.active, row.suspended, row.failed, row.closed};
  return by_state[state];
}

const char* word_for(librun_state_t state) {
  return state == LIBRUN_FAILED_STATE ? "the test says so" : librun_state_name(state);
}

}  // namespace

TEST_CASE("each call in each state") {
  for (const Row& row : kRows) {
    for (const librun_state_t state :
         {LIBRUN_ACTIVE, LIBRUN_SUSPENDED, LIBRUN_FAILED_STATE, LIBRUN_CLOSED}) {
      INFO(row.name << " while " << librun_state_name(state));
      Subject subject;
      subject.enter(state);
      barrier();  // an abort is not collective: it must not meet a rank that is still on its way
      CHECK_STATUS(row.call(subject), wanted(row, state));
      const bool refused = wanted(row, state) == kState || wanted(row, state) == kFailed;
      if (refused && state != LIBRUN_ACTIVE) {
        INFO(last_error());
        CHECK(contains(last_error(), word_for(state)));
      }
      if (refused) CHECK(subject.comm.state() == state);
      if (row.runs && state == LIBRUN_ACTIVE) CHECK_OK(subject.wait());
      barrier();
    }
  }
}
