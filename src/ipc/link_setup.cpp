// SPDX-License-Identifier: Apache-2.0
#include "ipc/link_setup.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>

namespace librun::ipc {
namespace {

/// More than all peers together need. Others of this user may connect as well, and stay silent.
constexpr std::size_t kMostPending = 2 * LIBRUN_MAX_WORLD;
/// How long a silent connection keeps its place when there is no other left.
constexpr std::chrono::seconds kSilence{1};
constexpr int kSocketFlags = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

std::string errno_text(const char* call, int error) {
  return std::string("(") + call + ": " + std::strerror(error) + ", " + std::to_string(error) + ")";
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

/// A connection that has not said who it is.
struct Pending {
  Link link;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

bool expired(Deadline deadline) { return std::chrono::steady_clock::now() > deadline; }

}  // namespace

Token make_token() {
  Token token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    throw Error(LIBRUN_SYSTEM, -1, "cannot make a token " + errno_text("getrandom", errno) + ".");
  return token;
}

Listener::Listener() : socket_(::socket(AF_UNIX, kSocketFlags, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);  // no name: the kernel picks one that is free
  const bool listening = socket_ &&
                         ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                         ::listen(socket_.get(), 2 * LIBRUN_MAX_WORLD) == 0;
  size = sizeof(address);
  if (!listening || ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw Error(LIBRUN_SYSTEM, -1, "cannot listen for peers " + errno_text("socket", errno) + ".",
                "check the limit of open files (ulimit -n).");
  const std::size_t name_bytes = size - offsetof(sockaddr_un, sun_path);
  address_.size_bytes = static_cast<std::uint8_t>(std::min(name_bytes, address_.name.size()));
  std::memcpy(address_.name.data(), address.sun_path, address_.size_bytes);
}

Connected Listener::connect_all(int rank, const std::vector<Address>& addresses, const Token& token,
                                Deadline deadline) const {
  Connected made{std::vector<Link>(addresses.size()), std::nullopt};
  const auto attempt = [&](auto&& part) {
    try {
      part();
    } catch (const Error& error) {
      if (!made.error) made.error = error;
    }
  };
  for (int peer = rank + 1; peer < static_cast<int>(addresses.size()); ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    attempt([&] { made.links[at] = connect_to(rank, peer, addresses[at], token, deadline); });
  }
  attempt([&] { accept_lower(rank, made.links, token, deadline); });
  return made;
}

Link Listener::connect_to(int rank, int peer, const Address& address, const Token& token,
                          Deadline deadline) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const std::size_t name_bytes = std::min<std::size_t>(address.size_bytes, address.name.size());
  std::memcpy(to.sun_path, address.name.data(), name_bytes);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_bytes);

  const std::string what = "cannot reach rank " + std::to_string(peer);
  UniqueFd socket(::socket(AF_UNIX, kSocketFlags, 0));
  if (!socket)
    throw Error(LIBRUN_SYSTEM, rank, what + " " + errno_text("socket", errno) + ".",
                "check the limit of open files (ulimit -n).");
  while (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), size) != 0) {
    const int error = errno;
    if (error != EAGAIN && error != EINTR)
      throw Error(LIBRUN_SYSTEM, rank, what + " " + errno_text("connect", error) + ".",
                  "ranks in containers must share the network namespace (--network=host).");
    if (expired(deadline))
      throw Error(LIBRUN_TIMEOUT, rank, what + " in time (connect: its queue is full).");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!same_user(socket.get()))
    throw Error(LIBRUN_SYSTEM, rank, what + ": its socket belongs to another user.",
                "run all ranks as one user.");
  Message hello;
  hello.type = MessageType::hello;
  hello.rank = rank;
  hello.token = token;
  Link link(std::move(socket));
  if (const int error = link.send(hello))
    throw Error(LIBRUN_SYSTEM, rank, what + " " + errno_text("sendmsg", error) + ".");
  return link;
}

void Listener::accept_lower(int rank, std::vector<Link>& links, const Token& token,
                            Deadline deadline) const {
  std::vector<Pending> pending;
  int missing = rank;
  while (missing > 0) {
    if (expired(deadline)) {
      std::string who;
      for (int peer = 0; peer < rank; ++peer)
        if (!links[static_cast<std::size_t>(peer)].open()) who += " " + std::to_string(peer);
      throw Error(LIBRUN_TIMEOUT, rank, "no connection from rank" + who + " in time.");
    }
    const bool is_full = pending.size() >= kMostPending;
    std::vector<pollfd> entries;
    if (!is_full) entries.push_back({socket_.get(), POLLIN, 0});
    for (const Pending& each : pending) entries.push_back({each.link.fd(), POLLIN, 0});
    const std::size_t n_waiting = entries.size();
    std::vector<int> linked;
    for (int peer = 0; peer < static_cast<int>(links.size()); ++peer) {
      if (!links[static_cast<std::size_t>(peer)].open()) continue;
      linked.push_back(peer);
      entries.push_back({links[static_cast<std::size_t>(peer)].fd(), POLLIN, 0});
    }
    ::poll(entries.data(), entries.size(), 50);
    // Nothing is sent before all are linked, but the news of a failure. It is left for the
    // agreement.
    for (std::size_t i = 0; i < linked.size(); ++i)
      if (entries[n_waiting + i].revents != 0)
        throw Error(LIBRUN_PEER_LOST, linked[i],
                    "rank " + std::to_string(linked[i]) + " gave up or is gone.");

    // A bound, since those that are turned away may come back as fast as they are accepted.
    for (std::size_t turn = 0; turn < kMostPending && pending.size() < kMostPending; ++turn) {
      UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EMFILE || errno == ENFILE))
        throw Error(LIBRUN_SYSTEM, rank,
                    "cannot accept a peer " + errno_text("accept4", errno) + ".",
                    "raise the limit of open files (ulimit -n).");
      if (!socket) break;
      if (same_user(socket.get())) pending.push_back({Link(std::move(socket))});
    }
    const auto silent_since = std::chrono::steady_clock::now() - kSilence;
    for (Pending& each : pending) {
      Link& link = each.link;
      Packet packet;
      const auto received = link.receive(packet);
      if (received == Link::Received::nothing) {
        if (is_full && each.since < silent_since) link.close();
        continue;
      }
      const Message& hello = packet.message;
      if (received == Link::Received::packet && hello.type == MessageType::hello &&
          hello.token == token && hello.rank < rank &&
          !links[static_cast<std::size_t>(hello.rank)].open()) {
        links[static_cast<std::size_t>(hello.rank)] = std::move(link);
        --missing;
      }
      link.close();
    }
    std::erase_if(pending, [](const Pending& each) { return !each.link.open(); });
  }
}

}  // namespace librun::ipc
