// SPDX-License-Identifier: Apache-2.0
// The Unix socket between two ranks: passes descriptors, and tells when a peer is gone.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "ipc/fork_guard.hpp"
#include "ipc/message.hpp"
#include "kernels/device.hpp"
#include "kernels/unique_handle.hpp"
#include "librun/error.hpp"

namespace librun::ipc {

/// What a link told.
struct PeerEvent {
  enum class Kind { lost, aborted } kind;
  int rank;              ///< the peer whose link it is
  librun_status_t code;  ///< aborted: why
  int culprit;           ///< aborted: the first rank that failed
  std::string text;
};

struct Packet {
  Message message;
  UniqueFd fd;
  /// Of a segment. Takes the descriptor.
  Exported exported() { return {std::move(fd), message.handle}; }
};

/// Move-only; the socket is nonblocking and closed on exec.
class Link {
 public:
  Link() = default;
  explicit Link(UniqueFd socket) : socket_(socket.release()) { close_in_children(fd()); }

  int fd() const { return socket_.get(); }
  bool open() const { return static_cast<bool>(socket_); }
  void close() { socket_.reset(); }

  /// @param fd -1: none @return 0 or errno; EAGAIN when the peer does not read
  int send(const Message& message, int fd = -1) const noexcept;

  enum class Received { packet, nothing, nonsense, closed };
  /// Takes one packet if there is one. One that makes no sense is dropped with what it carries.
  Received receive(Packet& packet) const;

 private:
  LinkFd socket_;
};

/// The links of one rank to all its peers. Thread-safe only as said.
class Links {
 public:
  Links() = default;
  Links(int rank, std::vector<Link> links)
      : rank_(rank), links_(std::move(links)), gone_(links_.size(), false), inbox_(links_.size()) {}

  bool empty() const { return links_.empty(); }
  int world() const { return static_cast<int>(links_.size()); }
  void close() { *this = Links(); }

  /// Tells every peer how to map a segment. @throws Error{system, peer_lost}
  void send_segment(std::uint64_t segment, std::uint64_t size_bytes,
                    const Exported& exported) const;

  /// The next segment of `peer`. @throws Error{timeout, peer_lost, or what an abort says}
  Packet receive_segment(int peer, std::chrono::steady_clock::time_point deadline);

  /// Best effort, to every peer. Thread-safe.
  void send_abort(librun_status_t code, int culprit, const std::string& text) const noexcept;

  /// Looks for a peer that is gone or has failed, for up to `timeout_ms`; tells the same each time
  /// from then on. Segments that come meanwhile are kept for receive_segment.
  /// @param wake_fd  also ends the wait when readable; -1: none
  /// @param excused  by rank: whose loss does not matter; null: everybody's does
  std::optional<PeerEvent> poll(int timeout_ms, int wake_fd = -1,
                                const std::vector<bool>* excused = nullptr);

 private:
  std::optional<PeerEvent> read_event(int peer);
  /// @throws Error{system} when the kernel could not hand the descriptor over
  Packet checked(Packet packet) const;

  int rank_ = 0;
  std::vector<Link> links_;  // by rank; the own one is closed
  std::vector<bool> gone_;
  std::optional<PeerEvent> abort_;         // the first that poll came across
  std::vector<std::deque<Packet>> inbox_;  // segments that poll came across
};

/// "rank 2 is gone (its link closed)".
PeerEvent lost_event(int peer);

}  // namespace librun::ipc
