// SPDX-License-Identifier: Apache-2.0
// How ranks connect, with strangers at the door: the ranks find each other all the same, and
// whoever waits for a rank that does not come is done at the deadline.
#include "ipc/link_setup.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace librun;
using namespace librun::ipc;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr uid_t kNobody = 65534;

Deadline in(milliseconds time) { return Clock::now() + time; }

long open_descriptors() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

/// @return -1 when it is not taken
UniqueFd knock(const Address& address) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address.name.data(), address.size_bytes);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size_bytes);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), size) != 0) socket.reset();
  return socket;
}

Message hello_of(int rank, const Token& token) {
  Message hello;
  hello.rank = rank;
  hello.token = token;
  return hello;
}

/// The ranks of a job as threads.
class Job {
 public:
  explicit Job(int world)
      : listeners_(static_cast<std::size_t>(world)), errors_(listeners_.size()) {
    for (const Listener& listener : listeners_) addresses_.push_back(listener.address());
  }
  const std::vector<Address>& addresses() const { return addresses_; }
  const Token& token() const { return token_; }
  const std::vector<std::string>& errors() const { return errors_; }

  /// Those of `ranks` connect, and are done at the deadline.
  std::vector<std::vector<Link>> connect(const std::vector<int>& ranks, milliseconds time) {
    std::vector<std::vector<Link>> links(listeners_.size());
    std::vector<std::thread> threads;
    const Deadline deadline = in(time);
    for (const int rank : ranks)
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        librun::ipc::Connected made =
            listeners_[at].connect_all(rank, addresses_, token_, deadline);
        links[at] = std::move(made.links);
        if (made.error) errors_[at] = made.error->what();
      });
    for (std::thread& thread : threads) thread.join();
    return links;
  }

 private:
  std::vector<Listener> listeners_;
  std::vector<Address> addresses_;
  Token token_ = make_token();
  std::vector<std::string> errors_;
};

/// Every pair of ranks hears each other, by the right number.
void check_all_connected(std::vector<std::vector<Link>>& links) {
  for (const auto& of_rank : links) REQUIRE(of_rank.size() == links.size());
  for (std::size_t from = 0; from < links.size(); ++from)
    for (std::size_t to = 0; to < links.size(); ++to) {
      if (from == to) continue;
      INFO("rank " << from << " to rank " << to);
      REQUIRE(links[from][to].open());
      CHECK((::fcntl(links[from][to].fd(), F_GETFD) & FD_CLOEXEC) != 0);
      CHECK(links[from][to].send(hello_of(static_cast<int>(from), {})) == 0);
      Packet packet;
      REQUIRE(links[to][from].receive(packet) == Link::Received::packet);
      CHECK(packet.message.rank == static_cast<int>(from));
    }
}

/// A stranger who does something again and again for as long as it lives.
class Stranger {
 public:
  explicit Stranger(std::function<void()> act)
      : thread_([this, act = std::move(act)] {
          while (!stop_) act();
        }) {}
  ~Stranger() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// So many more descriptors than are open now, for as long as it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(long more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{static_cast<rlim_t>(open_descriptors() + more), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// As another user, in another process. @return its exit code
int as_nobody(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(::setuid(kNobody) == 0 && act() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("four ranks connect, each with each, and descriptors close on exec") {
  Job job(4);
  auto links = job.connect({0, 1, 2, 3}, milliseconds(10000));
  check_all_connected(links);
}

TEST_CASE("strangers of the same user are turned away, and the ranks connect") {
  const long before = open_descriptors();
  {
    Job job(3);
    std::vector<UniqueFd> strangers;
    const auto send = [&](const void* bytes, std::size_t size_bytes) {
      strangers.push_back(knock(job.addresses()[2]));
      REQUIRE(strangers.back());
      CHECK(::send(strangers.back().get(), bytes, size_bytes, MSG_NOSIGNAL) ==
            static_cast<ssize_t>(size_bytes));
    };
    Token wrong = job.token();
    wrong[15] ^= 1;
    const Message wrong_token = hello_of(0, wrong);
    send(&wrong_token, sizeof(wrong_token));
    const Message not_lower = hello_of(2, job.token());
    send(&not_lower, sizeof(not_lower));
    Message no_hello = hello_of(0, job.token());
    no_hello.type = MessageType::abort;
    no_hello.code = LIBRUN_TIMEOUT;
    send(&no_hello, sizeof(no_hello));
    const std::vector<char> garbage(4000, 'x');
    send(garbage.data(), garbage.size());
    send(garbage.data(), 1);
    strangers.push_back(knock(job.addresses()[2]));  // silent
    strangers.push_back(knock(job.addresses()[2]));
    strangers.back().reset();  // gone again
    auto links = job.connect({0, 1, 2}, milliseconds(10000));
    for (const std::string& error : job.errors()) CHECK(error == "");
    check_all_connected(links);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("more silent strangers than there is room for hold the ranks up for a moment only") {
  constexpr std::size_t kStrangers = 300;
  Job job(2);
  // Enough for the strangers, and on this side for less than half of them.
  const DescriptorLimit limit(kStrangers + 2 * LIBRUN_MAX_WORLD + 20);
  std::vector<UniqueFd> strangers;
  std::atomic<bool> any_came{false};
  // The queue takes so many; the rest comes as soon as there is room.
  const Stranger crowd([&] {
    if (strangers.size() < kStrangers)
      if (UniqueFd socket = knock(job.addresses()[1])) {
        strangers.push_back(std::move(socket));
        any_came = true;
        return;
      }
    std::this_thread::sleep_for(milliseconds(1));
  });
  while (!any_came) std::this_thread::yield();
  auto links = job.connect({0, 1}, milliseconds(20000));
  for (const std::string& error : job.errors()) CHECK(error == "");
  check_all_connected(links);
}

TEST_CASE("who waits for a rank that does not come is done at the deadline, whoever knocks") {
  Job job(2);
  const auto which = GENERATE(0, 1, 2);
  std::optional<UniqueFd> talker;
  const std::vector<char> garbage(sizeof(Message), 'x');
  const Stranger stranger([&] {
    if (which == 0) return std::this_thread::sleep_for(milliseconds(1));
    if (which == 1) return static_cast<void>(knock(job.addresses()[1]));
    if (!talker || ::send(talker->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL) < 0)
      talker = knock(job.addresses()[1]);
  });
  const auto start = Clock::now();
  job.connect({1}, milliseconds(300));
  CHECK(Clock::now() - start < milliseconds(2000));
  CHECK(job.errors()[1].find("no connection from rank 0 in time") != std::string::npos);
}

TEST_CASE("another user is turned away, with the right token too") {
  if (::geteuid() != 0) return;  // only root can be somebody else
  Job job(2);
  CHECK(as_nobody([&] {
          const UniqueFd socket = knock(job.addresses()[1]);
          const Message hello = hello_of(0, job.token());
          return socket && ::send(socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL) > 0;
        }) == 0);
  job.connect({1}, milliseconds(300));
  CHECK(job.errors()[1].find("no connection from rank 0 in time") != std::string::npos);
}

TEST_CASE("a socket of another user is not told the token") {
  if (::geteuid() != 0) return;  // only root can be somebody else
  int to_parent[2];
  int to_child[2];
  REQUIRE(::pipe(to_parent) == 0);
  REQUIRE(::pipe(to_child) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(1);
    const Listener listener;
    const Address address = listener.address();
    char done = 0;
    ::_exit(::write(to_parent[1], &address, sizeof(address)) == sizeof(address) &&
                    ::read(to_child[0], &done, 1) == 1
                ? 0
                : 1);
  }
  Address theirs;
  REQUIRE(::read(to_parent[0], &theirs, sizeof(theirs)) == sizeof(theirs));
  Listener mine;
  const auto made =
      mine.connect_all(0, {mine.address(), theirs}, make_token(), in(milliseconds(2000)));
  REQUIRE(made.error);
  CHECK(std::string(made.error->what()).find("belongs to another user") != std::string::npos);
  CHECK(::write(to_child[1], "x", 1) == 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  for (const int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(fd);
}

TEST_CASE("tokens differ, and a listener has no name in a file system") {
  CHECK(make_token() != make_token());
  const Listener first;
  const Listener second;
  CHECK(first.address().size_bytes > 1);
  CHECK(first.address().name[0] == '\0');
  CHECK(first.address().name != second.address().name);
}
