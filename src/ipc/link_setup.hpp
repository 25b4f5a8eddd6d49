// SPDX-License-Identifier: Apache-2.0
// How the ranks find each other's sockets and connect.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ipc/exchange.hpp"
#include "ipc/link.hpp"

namespace librun::ipc {

/// The kernel picks the name in the abstract namespace: nothing in a file system to leak, guess or
/// create before us, and independent of mount, PID, IPC and UTS namespaces.
struct Address {
  std::uint8_t size_bytes = 0;
  std::array<char, 15> name{};
};

/// Random, for one bring-up of one communicator.
Token make_token();

/// What a rank could make; with an error the rest still tells what happened to the others.
struct Connected {
  std::vector<Link> links;     ///< by rank
  std::optional<Error> error;  ///< the first: of code system, timeout or peer_lost
};

class Listener {
 public:
  /// @throws Error{system}
  Listener();
  const Address& address() const { return address_; }

  /// Connects every pair: the lower rank connects, the higher accepts. Takes only processes of the
  /// same user that know the token.
  Connected connect_all(int rank, const std::vector<Address>& addresses, const Token& token,
                        Deadline deadline) const;

 private:
  Link connect_to(int rank, int peer, const Address& address, const Token& token,
                  Deadline deadline) const;
  void accept_lower(int rank, std::vector<Link>& links, const Token& token,
                    Deadline deadline) const;

  UniqueFd socket_;
  Address address_;
};

}  // namespace librun::ipc
