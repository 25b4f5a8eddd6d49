// SPDX-License-Identifier: Apache-2.0
#include "ipc/link.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.hpp"

using namespace librun;
using namespace librun::ipc;

namespace {

using std::chrono::steady_clock;

/// Two ranks in one process.
struct Pair {
  Pair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    std::vector<Link> first(2);
    std::vector<Link> second(2);
    first[1] = Link(UniqueFd(fds[0]));
    second[0] = Link(UniqueFd(fds[1]));
    zero = Links(0, std::move(first));
    one = Links(1, std::move(second));
  }
  Links zero, one;
};

}  // namespace

TEST_CASE("a descriptor arrives as the same file") {
  Pair pair;
  const Exported file{UniqueFd(::memfd_create("test", MFD_CLOEXEC)), {}};
  pair.zero.send_segment(42, 4096, file);
  // Looking for a death meanwhile must not swallow it.
  if (GENERATE(true, false)) CHECK(!pair.one.poll(0));
  const Packet packet = pair.one.receive_segment(0, steady_clock::now());
  CHECK(packet.message.segment == 42);
  struct stat sent {};
  struct stat got {};
  ::fstat(file.fd.get(), &sent);
  ::fstat(packet.fd.get(), &got);
  CHECK(sent.st_ino == got.st_ino);
}

TEST_CASE("a closed link is the death of the peer, until it is excused") {
  Pair pair;
  pair.zero.close();
  const auto event = pair.one.poll(1000);
  REQUIRE(event);
  CHECK(event->kind == PeerEvent::Kind::lost);
  CHECK(event->rank == 0);
  CHECK(pair.one.poll(0));
  const std::vector<bool> excused{true, false};
  CHECK(!pair.one.poll(0, -1, &excused));
}

TEST_CASE("a child of fork does not hide that its parent has closed a link") {
  Pair pair;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0)
    for (;;) ::pause();
  pair.zero.close();
  const auto event = pair.one.poll(5000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  REQUIRE(event);
  CHECK(event->kind == PeerEvent::Kind::lost);
}

TEST_CASE("an abort tells who was first, also when the link closes behind it") {
  Pair pair;
  pair.zero.send_abort(LIBRUN_TIMEOUT, 5, "rank 5 did not come");
  pair.zero.close();
  const auto event = pair.one.poll(1000);
  REQUIRE(event);
  CHECK(event->kind == PeerEvent::Kind::aborted);
  CHECK(event->culprit == 5);
  CHECK(event->text == "rank 5 did not come");
}

TEST_CASE("waiting for a descriptor ends at the deadline, or when the peer goes") {
  Pair pair;
  CHECK_THROWS_AS(pair.one.receive_segment(0, steady_clock::now() + std::chrono::milliseconds(20)),
                  Error);
  pair.zero.close();
  try {
    pair.one.receive_segment(0, steady_clock::now() + std::chrono::seconds(5));
    FAIL("the peer is gone");
  } catch (const Error& error) {
    CHECK(error.code() == LIBRUN_PEER_LOST);
  }
}
