// SPDX-License-Identifier: Apache-2.0
// Suspend, resume and close.
#include <fmt/format.h>

#include <cstring>
#include <deque>

#include "librun/librun.h"
#include "runtime/communicator.hpp"
#include "runtime/log.hpp"
#include "runtime/process.hpp"
#include "runtime/status.hpp"
#include "runtime/suspend_request.hpp"

namespace librun {
namespace {

std::uint64_t elapsed_us(std::chrono::steady_clock::time_point start) {
  const auto elapsed = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
}

/// What must be alike before a transition starts.
struct Standing {
  librun_state_t state;
  std::uint32_t padding;
  std::uint64_t generation;
  std::uint64_t digest;
};

}  // namespace

/// @param refused why this rank will not go on, if it will not
/// @return true when all ranks are in state `already`: nothing to do
bool Communicator::agree_on_state(Phases& phases, librun_state_t already, const Error* refused) {
  const Ballots ballots = phases.run("precheck", [&](Ballot& mine) {
    if (refused)
      throw Rejection(refused->code(), refused->rank(), refused->text(), refused->hint());
    if (already == LIBRUN_SUSPENDED && has_baked_pointers_)
      throw Rejection(LIBRUN_UNSUPPORTED, rank(),
                      who() + " has captured a graph with LIBRUN_BAKED_POINTERS=1.",
                      "its launches would lead nowhere after a resume: unset that.");
    if (capture_)
      throw Rejection(LIBRUN_REJECTED, rank(), who() + " has an open capture.",
                      "call librun_graph_end first.");
    // Where it may still be rejected. The phases behind wait again, for nothing as a rule.
    if (already == LIBRUN_SUSPENDED && state() == LIBRUN_ACTIVE)
      drain_or_reject(phases.work_deadline());
    mine.put(Standing{state(), 0, generation_, registry_.digest()});
  });
  const auto first = ballots[0].get<Standing>();
  for (std::size_t peer = 0; peer < ballots.size(); ++peer) {
    const auto theirs = ballots[peer].get<Standing>();
    const auto differs = [&](const char* what, const std::string& a, const std::string& b) {
      if (a == b) return;
      throw Error(
          LIBRUN_INVALID_STATE, static_cast<int>(peer),
          fmt::format("the ranks differ: {} is {} on rank {} and {} on rank 0.", what, a, peer, b),
          "make the same calls on all ranks.");
    };
    differs("the state", librun_state_name(theirs.state), librun_state_name(first.state));
    differs("the generation", std::to_string(theirs.generation), std::to_string(first.generation));
    differs("the digest of registered buffers", std::to_string(theirs.digest),
            std::to_string(first.digest));
  }
  return first.state == already;
}

/// Active to suspended. When a phase is over, it is over on all ranks.
void Communicator::take_down(Phases& phases) {
  // Who has drained may close: the launches of peers use their own mappings, and what a peer has
  // mapped lives until it has closed that too. So one agreement does for both.
  phases.run("close", [&](Ballot&) {
    // Calls that were made before the suspend run to their end; only then the gate closes. A graph
    // that another thread launched in between has passed it, or is caught by it.
    drain_or_fail(phases.work_deadline());
    set_gate(kGateClosed);
    drain_or_fail(phases.work_deadline());
    // Peers close their links after the last phase: by then nobody may take that for a death.
    monitor_.stop();
    throw_if_failed();
    const int error = peers_.close_all();
    decoys_.clear();
    if (!peers_.entries().empty())
      throw Error(LIBRUN_SYSTEM, rank(),
                  fmt::format("{}: {} mappings of peers cannot be closed ({}, {}).", who(),
                              peers_.entries().size(), std::strerror(error), error));
  });
  // Not before: memory that travels as a handle must not be freed while a peer has it open.
  phases.run("release", [&](Ballot&) {
    if (const int error = arena_->release())
      throw Error(LIBRUN_SYSTEM, rank(),
                  fmt::format("{}: the arena cannot be given back ({}, {}).", who(),
                              std::strerror(error), error));
    for (std::byte*& arena : control_->arena) arena = nullptr;
    for (int slot = 0; slot < LIBRUN_MAX_BUFFERS; ++slot)
      if (registry_.at(slot)) control_->slots[slot].live = 0;
    device_->publish(*control_);
  });
  replace_links({});
}

bool Communicator::suspend_locked(int timeout_ms, const Error* refused) {
  const auto start = std::chrono::steady_clock::now();
  const UnderWay under_way(*this, "suspend");
  bool done = false;
  guarded(Request::suspend, [&] {
    Phases phases(Request::suspend, exchange_, watch(), deadline(timeout_ms));
    if (agree_on_state(phases, LIBRUN_SUSPENDED, refused)) return;
    take_down(phases);
    enter_state(LIBRUN_SUSPENDED);
    const std::lock_guard lock(board_mutex_);
    board_.phases[LIBRUN_TRANSITION_SUSPEND] = phases.timings();
    ++board_.stats.suspends;
    board_.stats.last_suspend_us = elapsed_us(start);
    done = true;
  });
  return done;
}

bool Communicator::suspend_requested() {
  const auto lock = enter(Call::suspend_requested);
  const std::uint64_t seen = suspend_requests();
  bool any = false;
  guarded(Request::suspend_requested, [&] {
    Phases phases(Request::suspend_requested, exchange_, watch(), deadline(-1));
    const Ballots ballots =
        phases.run("ask", [&](Ballot& mine) { mine.put(seen != requests_answered_); });
    for (const Ballot& ballot : ballots) any = any || ballot.get<bool>();
  });
  requests_answered_ = seen;
  return any;
}

bool Communicator::suspend(int timeout_ms) {
  const auto lock = enter(Call::suspend);
  return suspend_locked(timeout_ms);
}

/// Goes over to `mpi` once all of its ranks have agreed that they are who they were.
void Communicator::adopt(MPI_Comm mpi, ipc::Deadline deadline) {
  Phases::require_mpi();
  ipc::Exchange fresh(mpi, deadline);
  const char* const hint = "pass a communicator of the same ranks in the same order.";
  try {
    Phases phases(Request::resume, fresh, watch(), deadline);
    const Ballots ballots = phases.run("membership", [&](Ballot& mine) {
      if (fresh.rank() != rank() || fresh.world() != world())
        throw Rejection(LIBRUN_REJECTED, rank(),
                        fmt::format("it was rank {} of {} and is rank {} of {} in the new "
                                    "MPI communicator.",
                                    rank(), world(), fresh.rank(), fresh.world()),
                        hint);
      mine.put(identity_);
    });
    for (std::size_t peer = 0; peer < ballots.size(); ++peer)
      if (ballots[peer].get<std::uint64_t>() != ballots[0].get<std::uint64_t>())
        throw Rejection(LIBRUN_REJECTED, static_cast<int>(peer),
                        fmt::format("resume: rank {} passed another librun communicator than rank "
                                    "0.",
                                    peer),
                        hint);
  } catch (const Rejection&) {
    fresh.free();  // all ranks come here
    throw;
  }
  exchange_.free();
  exchange_ = std::move(fresh);
}

bool Communicator::resume_locked(int timeout_ms, MPI_Comm mpi) {
  const auto start = std::chrono::steady_clock::now();
  const auto limit = deadline(timeout_ms);
  const UnderWay under_way(*this, "resume");
  bool done = false;
  guarded(Request::resume, [&] {
    if (mpi != MPI_COMM_NULL) adopt(mpi, limit);
    Phases phases(Request::resume, exchange_, watch(), limit);
    if (agree_on_state(phases, LIBRUN_ACTIVE)) return;
    ++generation_;
    bring_up(phases, false);
    become_active();
    const std::lock_guard lock(board_mutex_);
    board_.phases[LIBRUN_TRANSITION_RESUME] = phases.timings();
    board_.stats.last_resume_us = elapsed_us(start);
    done = true;
  });
  return done;
}

bool Communicator::resume(int timeout_ms, MPI_Comm mpi) {
  const auto lock = enter(Call::resume);
  return resume_locked(timeout_ms, mpi);
}

bool Communicator::suspend_all(int timeout_ms) {
  bool any = false;
  std::vector<std::pair<std::shared_ptr<Communicator>, std::unique_lock<std::mutex>>> entered;
  for (const auto& communicator : alive()) {
    if (communicator->state() == LIBRUN_CLOSED) continue;
    entered.emplace_back(communicator, communicator->enter(Call::suspend));
  }
  std::deque<UnderWay> under_way;
  for (const auto& [communicator, lock] : entered) under_way.emplace_back(*communicator, "suspend");
  // A rejection by one must leave all as they were: so all are asked before any is touched. Ranks
  // that share only some communicators hear of a rejection elsewhere when they are asked again.
  std::optional<Rejection> refused;
  const auto ask = [&](auto&& question) {
    try {
      question();
    } catch (const Rejection& rejection) {
      if (!refused) refused = rejection;
    }
  };
  for (const auto& [communicator, lock] : entered)
    ask([&, &asked = communicator] {
      asked->guarded(Request::suspend, [&] {
        Phases phases(Request::suspend, asked->exchange_, asked->watch(),
                      asked->deadline(timeout_ms));
        asked->agree_on_state(phases, LIBRUN_SUSPENDED);
      });
    });
  for (const auto& [communicator, lock] : entered)
    ask([&, &asked = communicator] {
      any = asked->suspend_locked(timeout_ms, refused ? &*refused : nullptr) || any;
    });
  if (refused) throw Rejection(*refused);
  return any;
}

bool Communicator::resume_all(int timeout_ms) {
  bool any = false;
  for (const auto& communicator : alive())
    if (communicator->state() != LIBRUN_CLOSED) any = communicator->resume(timeout_ms) || any;
  return any;
}

void Communicator::close() {
  if (process_ != process_instance()) return;
  const std::unique_lock lock(mutex_);
  // A failure is noted before the state is: it counts.
  const Verdict answer =
      state() == LIBRUN_ACTIVE && failure_.get() ? Verdict::local : verdict(Call::close);
  if (answer == Verdict::nothing) return;
  if (answer == Verdict::local || !ipc::mpi_usable()) {
    if (const auto cause = failure_.get())
      tell_late_ranks_once(Request::resume, Error(cause->code, cause->rank, cause->text));
    return release_local(false);
  }
  const UnderWay under_way(*this, "close");
  guarded(Request::close, [&] {
    Phases phases(Request::close, exchange_, watch(), deadline(-1));
    phases.run("agree", [&](Ballot&) {
      const int own = capture_ && capture_->on_device ? 1 : 0;
      if (captures::count() > own)
        throw Rejection(LIBRUN_REJECTED, rank(),
                        who() + " has an open capture of another communicator.",
                        "call librun_graph_end first.");
      if (own == 0) drain_or_reject(phases.work_deadline());
    });
    phases.run("drain", [&](Ballot&) {
      drop_capture();
      // Calls that were made before the close run to their end.
      drain_or_fail(phases.work_deadline());
      set_gate(kGateClosed);
      drain_or_fail(phases.work_deadline());
      monitor_.stop();
      throw_if_failed();
    });
    phases.run("unmap", [&](Ballot&) { peers_.close_all(); });
  });
  release_local(true);
  exchange_.free();
}

/// Ends what still runs here. @return false when something will not end
bool Communicator::quiesce() noexcept {
  constexpr auto kLimit = std::chrono::seconds(2);
  drop_capture();
  set_gate(kGateClosed);
  raise_abort();
  // A capture of another communicator is awaited: what is left behind now stays for ever.
  const auto limit = std::chrono::steady_clock::now() + kLimit;
  captures::Pause no_new_ones;
  if (!no_new_ones.wait_for_open_ones(limit)) return false;
  try {
    return device_->drain_all(limit);
  } catch (const Error&) {
    return true;  // the device is lost to this process: nothing runs there
  }
}

/// For memory that a kernel may still use, or that belongs to the parent of a forked child. What a
/// leaked member holds keeps the device.
void Communicator::leak_device_state() noexcept {
  if (process_ == process_instance())
    StatusBoard::instance().leave_mappings(peers_.entries().size());
  static_cast<void>(new ipc::PeerTable(std::move(peers_)));
  static_cast<void>(new DeviceMemory<HostWords>(std::move(words_)));
  static_cast<void>(new DeviceMemory<ControlBlock>(std::move(control_)));
  static_cast<void>(new std::vector(std::move(decoys_)));
  static_cast<void>(arena_.release());
}

/// @param agreed all ranks have unmapped each other's memory
void Communicator::release_local(bool agreed) noexcept {
  const bool quiet = quiesce();
  monitor_.stop();
  replace_links({});
  if (quiet) peers_.close_all();
  // The memory itself lives until the last peer has unmapped it; only this rank's view ends. Where
  // that is not so, or a kernel still runs, it is left to the end of the process.
  if (!quiet) leak_device_state();
  if (device_info_.by_handle && !agreed) static_cast<void>(arena_.release());
  arena_.reset();
  registry_ = Registry{};
  state_.store(LIBRUN_CLOSED);
  refresh_board();
}

void Communicator::abandon() noexcept {
  if (process_ != process_instance()) return monitor_.forget_after_fork();
  const Error error(LIBRUN_PEER_LOST, rank(),
                    who() + " destroyed its communicator without closing it.");
  if (state() == LIBRUN_ACTIVE) send_abort(error);
  if (state() == LIBRUN_SUSPENDED) tell_late_ranks_once(Request::resume, error);
  if (state() != LIBRUN_CLOSED || arena_) release_local(false);
}

}  // namespace librun
