// SPDX-License-Identifier: Apache-2.0
// Ranks that are not of one mind: every such call ends in time, with one error that says who
// differs.
#include <functional>

#include "support/job.hpp"

using namespace librun_test;

namespace {

constexpr int kOdd = 1;
constexpr int kTimeoutMs = 1500;
const std::pair<const char*, std::string> kShortDeadline{"LIBRUN_TIMEOUT_MS",
                                                         std::to_string(kTimeoutMs)};

bool is_odd() { return rank() == kOdd; }

/// Runs `call` on all ranks: it fails in time, alike on all, with `words` in the text.
template <class Call>
void check_fails(librun_status_t wanted, std::initializer_list<const char*> words, Call call) {
  barrier();
  const auto start = std::chrono::steady_clock::now();
  const librun_status_t status = call();
  const auto elapsed = std::chrono::steady_clock::now() - start;
  const std::string text = last_error();
  INFO(librun_status_string(status) << ": " << text);
  CHECK(status == wanted);
  for (const char* word : words) CHECK(contains(text, word));
  CHECK(elapsed < std::chrono::milliseconds(kTimeoutMs + 2000));
  CHECK(same_on_all_ranks(std::hash<std::string>{}(text)));
}

void check_over(librun::Communicator& comm) {
  CHECK(comm.state() == LIBRUN_FAILED_STATE);
  CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_FAILED);
  CHECK_OK(librun_comm_close(comm.get()));
  barrier();
  librun::Communicator fresh = create();
  CHECK(sum_difference(fresh, 1) == "");
  CHECK_OK(librun_comm_close(fresh.get()));
}

librun_status_t register_bytes(const librun::Communicator& comm, void* memory, std::size_t bytes) {
  librun_buffer_t buffer{};
  return librun_register(comm.get(), memory, bytes, &buffer);
}

/// What all ranks but one call; that one comes when the others have given up.
struct Collective {
  const char* name;
  bool while_suspended;
  librun_status_t (*call)(const librun::Communicator& comm, void* memory);
};

const Collective kCollectives[] = {
    {"suspend", false, [](const auto& comm, void*) { return librun_suspend(comm.get(), -1); }},
    {"resume", true, [](const auto& comm, void*) { return librun_resume(comm.get(), -1); }},
    {"register", false, [](const auto& comm, void* m) { return register_bytes(comm, m, 4096); }},
    {"close", false, [](const auto& comm, void*) { return librun_comm_close(comm.get()); }},
    {"close", true, [](const auto& comm, void*) { return librun_comm_close(comm.get()); }}};

}  // namespace

TEST_CASE("some ranks make the call, one does not: it is named, and told when it comes") {
  const ScopedEnv env{kShortDeadline};
  for (const Collective& one : kCollectives) {
    INFO(one.name << (one.while_suspended ? " while suspended" : ""));
    librun::Communicator comm = create();
    void* memory = comm.allocate(4096);
    if (one.while_suspended) CHECK(comm.suspend());
    barrier();
    const auto start = std::chrono::steady_clock::now();
    if (!is_odd()) {
      CHECK_STATUS(one.call(comm, memory), LIBRUN_TIMEOUT);
      CHECK(contains(last_error(), "rank 1"));
      CHECK(contains(last_error(), one.name));
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(kTimeoutMs + 2000));
    barrier();
    // A communicator that failed meanwhile closes locally, once its rank has heard of it.
    const bool closes = std::string(one.name) == "close" && !one.while_suspended;
    if (is_odd() && closes) {
      CHECK(hears_of_failure(comm));
    } else if (is_odd()) {
      CHECK(one.call(comm, memory) != LIBRUN_OK);
      CHECK(contains(last_error(), "rank 1 did not come"));
    }
    CHECK_OK(librun_comm_close(comm.get()));
    CHECK(comm.state() == LIBRUN_CLOSED);
    barrier();
  }
}

TEST_CASE("suspended ranks, and one that has failed or closes") {
  const ScopedEnv env{kShortDeadline};
  SECTION("it has failed, the others suspend again") {
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    barrier();
    if (is_odd()) CHECK_OK(librun_abort(comm.get(), "pump on fire"));
    const librun_status_t status = librun_suspend(comm.get(), -1);
    INFO(last_error());
    CHECK(status == LIBRUN_FAILED);
    CHECK(contains(last_error(), "rank 1 aborted: pump on fire"));
    check_over(comm);
  }
  SECTION("it closes, the others resume") {
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    check_fails(LIBRUN_INVALID_STATE, {"rank 0 resume", "rank 1 close"}, [&] {
      return is_odd() ? librun_comm_close(comm.get()) : librun_resume(comm.get(), -1);
    });
    check_over(comm);
  }
  SECTION("it repeats the suspend, the others resume") {
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    check_fails(LIBRUN_INVALID_STATE, {"rank 0 resume", "rank 1 suspend"}, [&] {
      return is_odd() ? librun_suspend(comm.get(), -1) : librun_resume(comm.get(), -1);
    });
    check_over(comm);
  }
}

TEST_CASE("registrations that differ") {
  const ScopedEnv env{kShortDeadline};
  librun::Communicator comm = create();
  void* memory = comm.allocate(8192);
  SECTION("one rank registers once more") {
    check_fails(LIBRUN_INVALID_STATE, {"rank 0 suspend", "rank 1 register"}, [&] {
      return is_odd() ? register_bytes(comm, memory, 4096) : librun_suspend(comm.get(), -1);
    });
    check_over(comm);
  }
  SECTION("one rank registers another size: refused, nothing is lost") {
    check_fails(LIBRUN_INVALID_ARGUMENT, {"rank 1", "4096", "8192"},
                [&] { return register_bytes(comm, memory, is_odd() ? 4096 : 8192); });
    CHECK(comm.state() == LIBRUN_ACTIVE);
    CHECK_OK(register_bytes(comm, memory, 8192));
    CHECK(comm.suspend());
    CHECK(comm.resume());
    CHECK(sum_difference(comm, 2) == "");
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("two communicators that two ranks suspend in opposite order") {
  const ScopedEnv env{kShortDeadline};
  librun::Communicator first = create();
  librun::Communicator second = create();
  barrier();
  const auto start = std::chrono::steady_clock::now();
  // The others give the first up while the odd rank is still willing to wait for them.
  const auto suspend_first = [&] {
    CHECK_STATUS(librun_suspend(first.get(), -1), LIBRUN_TIMEOUT);
    CHECK(contains(last_error(), "rank 1 did not come to phase precheck"));
  };
  if (!is_odd()) suspend_first();
  CHECK_OK(librun_suspend(second.get(), 4 * kTimeoutMs));
  if (is_odd()) suspend_first();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(kTimeoutMs + 2000));
  CHECK(second.resume());
  CHECK(sum_difference(second, 3) == "");
  CHECK_OK(librun_comm_close(second.get()));
  check_over(first);
}

TEST_CASE("a deadline passes on rank 0 alone, in the last agreement: in the end nobody goes on") {
  constexpr int kShortMs = 300;
  constexpr int kLongMs = 5000;
  const auto patience = [] { return rank() == 0 ? kShortMs : kLongMs; };
  const auto elapsed_since = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::steady_clock::now() - start;
  };
  SECTION("of suspend: whoever suspended is told by its resume") {
    const ScopedEnv env{{"LIBRUN_FAULT", "suspend_after_release@1:delay=1500"}};
    librun::Communicator comm = create();
    barrier();
    const librun_status_t status = librun_suspend(comm.get(), patience());
    if (rank() == 0) {
      CHECK(status == LIBRUN_TIMEOUT);
      CHECK(contains(last_error(), "rank 1 did not come to phase release"));
    }
    if (status == LIBRUN_OK) {
      CHECK(comm.state() == LIBRUN_SUSPENDED);
      const auto start = std::chrono::steady_clock::now();
      CHECK(librun_resume(comm.get(), kLongMs) == LIBRUN_TIMEOUT);
      CHECK(contains(last_error(), "rank 1 did not come to phase release"));
      CHECK(elapsed_since(start) < std::chrono::milliseconds(kLongMs));
    }
    check_over(comm);
  }
  SECTION("of resume: whoever resumed hears of it") {
    const ScopedEnv env{{"LIBRUN_FAULT", "resume_after_prove@1#3:delay=1500"}};
    librun::Communicator comm = create();
    CHECK(comm.suspend());
    barrier();
    const librun_status_t status = librun_resume(comm.get(), patience());
    if (rank() == 0) CHECK(status == LIBRUN_TIMEOUT);
    CHECK(hears_of_failure(comm));
    CHECK_STATUS(librun_check(comm.get()), LIBRUN_FAILED);
    CHECK(contains(last_error(), "rank 1 did not come to phase prove"));
    check_over(comm);
  }
}
