// SPDX-License-Identifier: Apache-2.0
// How all ranks come to the same answer. An agreement decides nothing; it makes failure uniform.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ipc/exchange.hpp"
#include "librun/error.hpp"

namespace librun {

/// A no that was found before anything was touched: the state stays, the call may be repeated.
class Rejection : public Error {
 public:
  using Error::Error;
};

enum class Request : std::int32_t {
  create,
  suspend,
  resume,
  close,
  register_,
  unregister,
  all_reduce,  ///< of stepped, which meets in agreements
  suspend_requested
};
const char* request_name(Request request);

/// What one rank says at the end of a phase.
struct Ballot {
  static constexpr std::size_t kPayloadBytes = 448;

  Request request{};
  std::int32_t status = LIBRUN_OK;
  std::int32_t culprit = -1;
  std::uint8_t rejected = 0;    ///< status is a Rejection
  std::uint8_t last_words = 0;  ///< the sender failed before, and says so to whoever comes late
  char phase[22] = {};
  char text[400] = {};
  char hint[200] = {};
  std::byte payload[kPayloadBytes] = {};

  void set_error(const Error& error);

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kPayloadBytes);
    std::memcpy(payload, &value, sizeof(T));
  }
  template <class T>
  T get() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kPayloadBytes);
    T value;
    std::memcpy(&value, payload, sizeof(T));
    return value;
  }
};
static_assert(sizeof(Ballot) <= ipc::kRecordBytes && std::is_trivially_copyable_v<Ballot>);

using Ballots = std::vector<Ballot>;

Ballot make_ballot(Request request, const char* phase);

/// Puts an abort that is known before the vote into the ballot, so that it ends the phase on all
/// ranks. A loss is left to the exchange, which knows whether the rank had done its part.
void take_news(Ballot& mine, const ipc::Watch& watch, int world);

/// One exchange of ballots. Returns when all ranks were in this phase and none had an error.
/// @throws Rejection, or Error: the same on all ranks, naming the first rank and the phase; after
/// an
///         Error that only this rank may have seen, `exchange` has told the late ranks
Ballots vote(ipc::Exchange& exchange, const Ballot& mine, ipc::Deadline deadline,
             const ipc::Watch& watch);

/// Leaves the cause where ranks that come late will find it. Local.
void tell_late_ranks(ipc::Exchange& exchange, Request request, const Error& cause) noexcept;

}  // namespace librun
