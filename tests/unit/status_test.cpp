// SPDX-License-Identifier: Apache-2.0
// What a process shows of its communicators, and what a tool reads of it.
#include "runtime/status.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "common/process_status.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

CommunicatorStatus status_in(librun_state_t state) {
  CommunicatorStatus status;
  status.identity = 0xabcdef;
  status.rank = 1;
  status.world = 4;
  status.device = "host";
  status.state = state;
  return status;
}

bool has(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("each thing that makes a checkpoint worthless is named") {
  CHECK(blockers_of({}, 0).empty());
  CHECK(blockers_of({status_in(LIBRUN_SUSPENDED), status_in(LIBRUN_CLOSED)}, 0).empty());

  CHECK(has(blockers_of({status_in(LIBRUN_ACTIVE)}, 0), "rank 1 of 4 is active"));

  CommunicatorStatus resuming = status_in(LIBRUN_SUSPENDED);
  resuming.transition = "resume";
  CHECK(has(blockers_of({resuming}, 0), "has a resume under way"));

  CommunicatorStatus failed = status_in(LIBRUN_FAILED_STATE);
  CHECK(blockers_of({failed}, 0).empty());
  failed.peers = {{3, 2, 8192}};
  CHECK(has(blockers_of({failed}, 0), "has 2 mappings of rank 3's memory open: 8192 bytes"));

  CHECK(has(blockers_of({}, 2), "2 mappings of peers' memory could not be closed"));

  CommunicatorStatus under_mps = status_in(LIBRUN_SUSPENDED);
  under_mps.obstacles = {"MPS"};
  CHECK(blockers_of({under_mps, under_mps}, 0) == std::vector<std::string>{"MPS"});
}

TEST_CASE("memory that a checkpoint makes staged is a note and no blocker") {
  CommunicatorStatus status = status_in(LIBRUN_SUSPENDED);
  status.fragile_slots = {{7, 4096}};
  CHECK(blockers_of({status}, 0).empty());
  CHECK(has(notes_of({status}), "slot 7 (4096 bytes, exported by handle)"));
}

TEST_CASE("a tool reads what the process wrote, by its PID alone") {
  StatusBoard& board = StatusBoard::instance();
  const std::atomic state{LIBRUN_ACTIVE};
  ::setenv("LIBRUN_JOB", "a \"job\"", 1);
  CHECK_FALSE(car::read_status(::getpid()));
  int owner = 0;
  CommunicatorStatus status = status_in(LIBRUN_SUSPENDED);  // the state below counts
  status.peers = {{0, 1, 65536}};
  board.show(&owner, status, state);
  ::unsetenv("LIBRUN_JOB");

  auto read = car::read_status(::getpid());
  REQUIRE(read);
  CHECK(read->job == "a \"job\"");
  REQUIRE(read->communicators.size() == 1);
  CHECK(read->communicators[0].rank == 1);
  CHECK(read->communicators[0].state == "active");
  CHECK(read->communicators[0].open_mappings == 1);
  CHECK(read->blockers == board.blockers());
  CHECK(has(read->blockers, "is active"));
  bool found = false;
  for (const pid_t pid : car::processes_with_status()) found = found || pid == ::getpid();
  CHECK(found);

  board.show_failed(&owner);
  read = car::read_status(::getpid());
  REQUIRE(read);
  CHECK(read->communicators[0].state == "failed");

  board.remove(&owner);
  read = car::read_status(::getpid());
  REQUIRE(read);
  CHECK(read->communicators.empty());
  CHECK(read->blockers.empty());
}

TEST_CASE("a child of fork that inherits the file is not taken for its parent") {
  StatusBoard& board = StatusBoard::instance();
  const std::atomic state{LIBRUN_ACTIVE};
  int owner = 0;
  board.show(&owner, status_in(LIBRUN_ACTIVE), state);
  const pid_t idle = ::fork();
  if (idle == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK_FALSE(car::read_status(idle));
  ::kill(idle, SIGKILL);
  ::waitpid(idle, nullptr, 0);
  CHECK(car::look_for(idle) == car::Existence::gone);

  // One that uses librun itself has a file of its own, and leaves the parent's alone.
  const pid_t user = ::fork();
  if (user == 0) {
    StatusBoard& own = StatusBoard::instance();
    const bool empty = own.blockers().empty();
    int other = 0;
    own.show(&other, status_in(LIBRUN_SUSPENDED), std::atomic{LIBRUN_SUSPENDED});
    const auto read = car::read_status(::getpid());
    ::_exit(empty && read && read->communicators.size() == 1 &&
                    read->communicators[0].state == "suspended"
                ? 0
                : 1);
  }
  int ended = -1;
  ::waitpid(user, &ended, 0);
  CHECK(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == 0);
  const auto parents = car::read_status(::getpid());
  REQUIRE(parents);
  CHECK(parents->communicators.at(0).state == "active");
  board.remove(&owner);
}

TEST_CASE("a text that is cut, or has changed while it was read, is not taken") {
  pid_t pid = 0;
  std::uint64_t start = 0;
  const std::string members =
      R"("pid":5,"start_time":6,"host":"h","job":"","communicators":[],"blockers":["b"],"notes":[])";
  const std::string text = status_text(members);
  const auto whole = car::parse_status(text, pid, start);
  REQUIRE(whole);
  CHECK(pid == 5);
  CHECK(start == 6);
  CHECK(whole->blockers.size() == 1);
  for (std::size_t cut = 0; cut < text.size(); cut += 7)
    CHECK_FALSE(car::parse_status(text.substr(0, cut), pid, start));
  CHECK_FALSE(car::parse_status(text + " ", pid, start));
  std::string mixed = text;
  mixed.replace(mixed.find("\"b\""), 3, "\"c\"");
  CHECK_FALSE(car::parse_status(mixed, pid, start));
}

TEST_CASE("readers never see half of what is being rewritten") {
  StatusBoard& board = StatusBoard::instance();
  const std::atomic state{LIBRUN_ACTIVE};
  int owner = 0;
  // Some pages long, and of a length that changes; rank and mapping tell which text it is.
  const auto show = [&](int round) {
    CommunicatorStatus status = status_in(LIBRUN_ACTIVE);
    status.generation = static_cast<std::uint64_t>(round);
    for (int i = 0; i < 20 + round % 50; ++i)
      status.peers.push_back({i, static_cast<std::uint64_t>(round), 1});
    board.show(&owner, status, state);
  };
  show(1);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 2; !stop; ++round) {
      show(round);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto read = car::read_status(::getpid());
    REQUIRE(read);
    const auto& comm = read->communicators.at(0);
    const std::uint64_t peers = 20 + comm.generation % 50;
    CHECK(comm.open_mappings == peers * comm.generation);
    CHECK(read->blockers.size() == peers + 1);
  }
  stop = true;
  writer.join();
  board.remove(&owner);
}
