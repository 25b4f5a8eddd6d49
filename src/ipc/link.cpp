// SPDX-License-Identifier: Apache-2.0
#include "ipc/link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace librun::ipc {
namespace {

/// A peer is not listened to for ever in one go, so that deadlines and other peers get their turn.
constexpr int kPacketsInOneGo = 256;
/// Segments that came before they were asked for: far more than the protocol sends ahead.
constexpr std::size_t kInboxPackets = 64;

/// All that were passed, so that none is left open.
std::vector<UniqueFd> take_descriptors(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(part) + i * sizeof(int), sizeof(passed));
      fds.emplace_back(passed);
    }
  }
  return fds;
}

}  // namespace

int Link::send(const Message& message, int fd) const noexcept {
  iovec data{const_cast<Message*>(&message), sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  }
  return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ? 0 : errno;
}

Link::Received Link::receive(Packet& packet) const {
  std::byte bytes[sizeof(Message) + 1];
  iovec data{bytes, sizeof(bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return errno == EAGAIN ? Received::nothing : Received::closed;

  std::vector<UniqueFd> fds = take_descriptors(header);
  // A packet of no bytes looks like the end; only the latter has nothing behind it.
  if (size == 0 && fds.empty()) return Received::closed;
  const auto message = parse_message({bytes, static_cast<std::size_t>(size)});
  if (!message || fds.size() > 1) return Received::nonsense;
  packet.message = *message;
  packet.fd = fds.empty() ? UniqueFd() : std::move(fds.front());
  return Received::packet;
}

PeerEvent lost_event(int peer) {
  return {PeerEvent::Kind::lost, peer, LIBRUN_PEER_LOST, peer,
          "rank " + std::to_string(peer) + " is gone: its link closed."};
}

void Links::send_segment(std::uint64_t segment, std::uint64_t size_bytes,
                         const Exported& exported) const {
  Message message;
  message.type = MessageType::segment;
  message.by_handle = !exported.fd;
  message.handle = exported.handle;
  message.rank = rank_;
  message.segment = segment;
  message.size_bytes = size_bytes;
  for (int peer = 0; peer < world(); ++peer) {
    if (peer == rank_) continue;
    const int error = links_[static_cast<std::size_t>(peer)].send(message, exported.fd.get());
    if (error == EPIPE || error == ECONNRESET)
      throw Error(LIBRUN_PEER_LOST, peer, lost_event(peer).text);
    if (error != 0)
      throw Error(LIBRUN_SYSTEM, rank_,
                  "cannot pass a segment to rank " + std::to_string(peer) +
                      " (sendmsg: " + std::strerror(error) + ", " + std::to_string(error) + ").");
  }
}

Packet Links::checked(Packet packet) const {
  if (packet.fd || packet.message.by_handle) return packet;
  throw Error(LIBRUN_SYSTEM, rank_,
              "rank " + std::to_string(rank_) + " cannot take the descriptor that rank " +
                  std::to_string(packet.message.rank) + " passed: it has too many open files.",
              "raise the limit of open files (ulimit -n).");
}

Packet Links::receive_segment(int peer, std::chrono::steady_clock::time_point deadline) {
  auto& inbox = inbox_[static_cast<std::size_t>(peer)];
  if (!inbox.empty()) {
    Packet packet = std::move(inbox.front());
    inbox.pop_front();
    return checked(std::move(packet));
  }
  const Link& link = links_[static_cast<std::size_t>(peer)];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    Packet packet;
    switch (link.receive(packet)) {
      case Link::Received::closed:
        throw Error(LIBRUN_PEER_LOST, peer, lost_event(peer).text);
      case Link::Received::packet:
        if (packet.message.rank != peer) break;
        if (packet.message.type == MessageType::segment) return checked(std::move(packet));
        if (packet.message.type == MessageType::abort)
          throw Error(static_cast<librun_status_t>(packet.message.code), packet.message.culprit,
                      packet.message.text);
        break;
      case Link::Received::nonsense:
        break;
      case Link::Received::nothing: {
        pollfd entry{link.fd(), POLLIN, 0};
        ::poll(&entry, 1, static_cast<int>(std::clamp<long long>(left.count(), 0, 100)));
      }
    }
    if (left.count() <= 0)
      throw Error(LIBRUN_TIMEOUT, peer,
                  "rank " + std::to_string(peer) + " did not pass its segment in time.");
  }
}

void Links::send_abort(librun_status_t code, int culprit, const std::string& text) const noexcept {
  Message message;
  message.type = MessageType::abort;
  message.rank = rank_;
  message.code = code;
  message.culprit = culprit;
  text.copy(message.text, sizeof(message.text) - 1);
  for (const Link& link : links_)
    if (link.open()) link.send(message);
}

std::optional<PeerEvent> Links::read_event(int peer) {
  const auto at = static_cast<std::size_t>(peer);
  for (int taken = 0; taken < kPacketsInOneGo; ++taken) {
    Packet packet;
    switch (links_[at].receive(packet)) {
      case Link::Received::nothing:
        return std::nullopt;
      case Link::Received::closed:
        gone_[at] = true;
        return lost_event(peer);
      case Link::Received::nonsense:
        break;
      case Link::Received::packet:
        if (packet.message.rank != peer) break;
        if (packet.message.type == MessageType::abort)
          return PeerEvent{PeerEvent::Kind::aborted, peer,
                           static_cast<librun_status_t>(packet.message.code),
                           packet.message.culprit, packet.message.text};
        if (packet.message.type == MessageType::segment && inbox_[at].size() < kInboxPackets)
          inbox_[at].push_back(std::move(packet));
    }
  }
  return std::nullopt;
}

std::optional<PeerEvent> Links::poll(int timeout_ms, int wake_fd,
                                     const std::vector<bool>* excused) {
  const auto lost_peer = [&]() -> std::optional<PeerEvent> {
    for (std::size_t at = 0; at < gone_.size(); ++at)
      if (gone_[at] && !(excused && (*excused)[at])) return lost_event(static_cast<int>(at));
    return std::nullopt;
  };
  if (abort_) return abort_;
  if (auto known = lost_peer()) return known;
  std::vector<pollfd> entries;
  std::vector<int> peers;
  for (int peer = 0; peer < world(); ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    if (!links_[at].open() || gone_[at]) continue;
    entries.push_back({links_[at].fd(), POLLIN, 0});
    peers.push_back(peer);
  }
  if (wake_fd >= 0) entries.push_back({wake_fd, POLLIN, 0});
  if (::poll(entries.data(), entries.size(), timeout_ms) <= 0) return std::nullopt;
  // What a peer said before anything else: the loss of one is often the echo of another's failure.
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (entries[i].revents == 0) continue;
    auto event = read_event(peers[i]);
    if (event && event->kind == PeerEvent::Kind::aborted) return abort_ = std::move(event);
  }
  return lost_peer();
}

}  // namespace librun::ipc
