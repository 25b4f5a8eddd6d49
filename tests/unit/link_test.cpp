// SPDX-License-Identifier: Apache-2.0
#include "ipc/link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "support/catch.hpp"

using namespace librun;
using namespace librun::ipc;

namespace {

using std::chrono::steady_clock;

long open_descriptors() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

/// Two ranks in one process.
struct Pair {
  Pair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    std::vector<Link> first(2);
    std::vector<Link> second(2);
    first[1] = Link(UniqueFd(fds[0]));
    second[0] = Link(UniqueFd(fds[1]));
    raw = fds[0];
    zero = Links(0, std::move(first));
    one = Links(1, std::move(second));
  }
  Links zero, one;
  int raw = -1;  ///< the socket of zero
};

/// Any bytes with any number of descriptors, as a hostile peer sends them. @return false when full
bool send_raw(int socket, const void* bytes, std::size_t size_bytes, std::size_t n_fds) {
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  const std::vector<int> fds(n_fds, file.get());
  iovec data{const_cast<void*>(bytes), size_bytes};
  std::vector<std::byte> control(CMSG_SPACE(n_fds * sizeof(int)));
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (n_fds > 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    std::memcpy(CMSG_DATA(part), fds.data(), n_fds * sizeof(int));
  }
  return ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Message segment_of(int rank) {
  Message message;
  message.type = MessageType::segment;
  message.rank = rank;
  return message;
}

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
  // Who looked first may have had no use for it.
  const auto again = pair.one.poll(0);
  REQUIRE(again);
  CHECK(again->kind == PeerEvent::Kind::aborted);
  CHECK(again->text == event->text);
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

TEST_CASE("descriptors beyond the one of a packet are closed, and the packet is none") {
  Pair pair;
  const Message message = segment_of(0);
  const long before = open_descriptors();
  for (const std::size_t n_fds : {2, 3, 7}) {
    REQUIRE(send_raw(pair.raw, &message, sizeof(message), n_fds));
    CHECK(!pair.one.poll(0));
    CHECK(open_descriptors() == before);
  }
  CHECK_THROWS_AS(pair.one.receive_segment(0, steady_clock::now()), Error);
}

TEST_CASE("a peer that speaks for another rank is not heard") {
  Pair pair;
  Message message = segment_of(5);
  REQUIRE(send_raw(pair.raw, &message, sizeof(message), 1));
  message.type = MessageType::abort;
  message.code = LIBRUN_TIMEOUT;
  REQUIRE(send_raw(pair.raw, &message, sizeof(message), 0));
  CHECK(!pair.one.poll(0));
  CHECK_THROWS_AS(pair.one.receive_segment(0, steady_clock::now()), Error);
}

TEST_CASE("no descriptor that a link takes is passed on by exec") {
  Pair pair;
  const Message message = segment_of(0);
  REQUIRE(send_raw(pair.raw, &message, sizeof(message), 1));
  const Packet packet = pair.one.receive_segment(0, steady_clock::now());
  CHECK((::fcntl(packet.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a peer that talks without end holds nobody beyond the deadline") {
  Pair pair;
  std::atomic<bool> stop{false};
  std::thread talker([&] {
    Message message;  // hellos are nothing that anybody waits for
    const std::vector<char> garbage(sizeof(message), 'x');
    for (std::uint64_t i = 0; !stop; ++i)
      send_raw(pair.raw, i % 2 ? &message : static_cast<const void*>(garbage.data()),
               sizeof(message), i % 3);
  });
  const auto start = steady_clock::now();
  CHECK_THROWS_AS(pair.one.receive_segment(0, start + std::chrono::milliseconds(200)), Error);
  for (int look = 0; look < 20; ++look) CHECK(!pair.one.poll(10));
  CHECK(steady_clock::now() - start < std::chrono::seconds(5));
  stop = true;
  talker.join();
}

TEST_CASE("segments that nobody asked for do not pile up") {
  const long before = open_descriptors();
  {
    Pair pair;
    const Message message = segment_of(0);
    for (int i = 0; i < 2000; ++i) {
      send_raw(pair.raw, &message, sizeof(message), 1);
      CHECK(!pair.one.poll(0));
    }
    CHECK(open_descriptors() < before + 100);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("random packets with random descriptors leave nothing open and do no harm") {
  const long before = open_descriptors();
  {
    Pair pair;
    std::mt19937_64 random(20261130);
    for (int round = 0; round < 20000; ++round) {
      Message message = segment_of(0);
      message.type = static_cast<MessageType>(random() % 4);
      std::byte bytes[sizeof(Message) + 64];
      std::memset(bytes, 0, sizeof(bytes));
      std::memcpy(bytes, &message, sizeof(message));
      for (std::size_t change = random() % 3; change > 0; --change)
        bytes[random() % sizeof(bytes)] = static_cast<std::byte>(random());
      // Never empty: that is how the end looks.
      const std::size_t size_bytes = random() % 4 ? sizeof(Message) : 1 + random() % sizeof(bytes);
      send_raw(pair.raw, bytes, size_bytes, random() % 4);
      if (random() % 2) {
        const auto event = pair.one.poll(0);
        if (event && event->kind == PeerEvent::Kind::lost) FAIL("round " << round << ": lost");
      } else {
        try {
          pair.one.receive_segment(0, steady_clock::now());
        } catch (const Error& error) {
          if (error.code() == LIBRUN_PEER_LOST && error.rank() == 0 &&
              std::string(error.what()).find("its link closed") != std::string::npos)
            FAIL("round " << round << ": " << error.what());
        }
      }
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("what makes no sense is told apart from nothing, and what follows is heard") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  const Link one{UniqueFd(fds[0])};
  const Link other{UniqueFd(fds[1])};
  const Message message = segment_of(0);
  REQUIRE(send_raw(one.fd(), "garbage", 7, 0));
  REQUIRE(send_raw(one.fd(), &message, sizeof(message) - 1, 1));
  REQUIRE(send_raw(one.fd(), &message, sizeof(message), 0));
  Packet packet;
  CHECK(other.receive(packet) == Link::Received::nonsense);
  CHECK(other.receive(packet) == Link::Received::nonsense);
  CHECK(other.receive(packet) == Link::Received::packet);
  CHECK(other.receive(packet) == Link::Received::nothing);
}
