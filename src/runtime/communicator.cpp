// SPDX-License-Identifier: Apache-2.0
// Creation, the gate of every call, failure, and what the getters show.
#include "runtime/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "runtime/allocations.hpp"
#include "runtime/captures.hpp"
#include "runtime/live.hpp"
#include "runtime/log.hpp"
#include "runtime/process.hpp"
#include "runtime/status.hpp"

namespace librun {
namespace {

Settings complete(Settings settings, const Device& device, int world) {
  if (settings.arena_bytes == 0) settings.arena_bytes = device.default_arena_bytes(world);
  settings.arena_bytes = std::max(settings.arena_bytes, device.info().min_arena_bytes);
  return settings;
}

std::shared_ptr<Device> make_device(const Settings& settings) {
  if (settings.device == LIBRUN_DEVICE_CUDA)
    return make_cuda_device(settings.cuda_device, settings.cuda);
  if (settings.device == LIBRUN_DEVICE_AUTO) {
    try {
      return make_cuda_device(settings.cuda_device, settings.cuda);
    } catch (const Error&) {
      // auto means: the host, where there is no CUDA.
    }
  }
  return make_host_device(settings.isa);
}

constexpr auto kDrainGrace = std::chrono::seconds(2);

void raise(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

}  // namespace

Communicator::Communicator(const Settings& settings, std::shared_ptr<Device> device)
    : settings_(settings),
      process_(process_instance()),
      device_(std::move(device)),
      words_(device_, Memory::host_words),
      control_(device_, Memory::control),
      device_info_(device_->info()),
      device_id_(device_info_.id),
      obstacles_(device_->checkpoint_obstacles()) {}

std::shared_ptr<Communicator> Communicator::make(const Settings& settings, int world) {
  std::shared_ptr<Device> device = make_device(settings);
  const Settings completed = complete(settings, *device, world);
  return std::shared_ptr<Communicator>(new Communicator(completed, std::move(device)));
}

Communicator::~Communicator() {
  abandon();
  StatusBoard::instance().remove(this);
  if (process_ != process_instance()) {
    leak_device_state();
    return;
  }
  Allocations::instance().drop_owner(this);
}

std::vector<std::shared_ptr<Communicator>> Communicator::alive() { return live_communicators(); }

Verdict Communicator::verdict(Call call) const { return admit(state(), call); }

void Communicator::check_process() const {
  if (process_ != process_instance())
    throw Error(LIBRUN_INVALID_STATE, -1, "the communicator was created in another process.",
                "a child of fork must create its own.");
}

std::unique_lock<std::mutex> Communicator::enter(Call call) {
  check_process();
  std::unique_lock lock(mutex_);
  // An end that is refused is the end all the same: the caller's stream must not stay in a capture.
  const auto free_stream = [&] {
    if (call == Call::graph_end) drop_capture();
  };
  switch (const Verdict answer = verdict(call); answer) {
    case Verdict::is_failed:
      free_stream();
      [[fallthrough]];
    case Verdict::is_suspended:
    case Verdict::is_closed:
      refuse(answer, call);
    default:
      break;
  }
  // A launch has failed the communicator, and nobody has looked yet.
  const bool about_work = call != Call::abort && call != Call::deallocate;
  if (state() != LIBRUN_CLOSED && about_work && words_->fatal != 0) {
    free_stream();
    throw_outcome();
  }
  return lock;
}

void Communicator::refuse(Verdict verdict, Call call) {
  if (verdict == Verdict::is_failed) {
    // Peers may be waiting for this rank in a call that it will not make any more.
    if (const auto cause = failure_.get())
      tell_late_ranks_once(Request::resume, Error(cause->code, cause->rank, cause->text));
    throw_failure();
  }
  const bool suspended = verdict == Verdict::is_suspended;
  throw Error(LIBRUN_INVALID_STATE, rank(),
              fmt::format("{}: {}: the communicator is {}.", who(), call_name(call),
                          suspended ? "suspended" : "closed"),
              suspended ? "call librun_resume on all ranks first." : "create another one.");
}

void Communicator::throw_failure() {
  const Cause cause = failure_.get().value_or(Cause{});
  if (failure_.take_report()) throw Error(cause.code, cause.rank, cause.text, cause.hint);
  throw Error(LIBRUN_FAILED, cause.rank, "the communicator failed earlier: " + cause.text,
              "close it and create another one.");
}

void Communicator::fail(const Error& error, std::optional<Request> tell) noexcept {
  const bool first = failure_.set(Cause::of(error));
  // Before the abort wakes whoever waits in a call: it will look at the state. The gate takes
  // longer.
  state_.store(LIBRUN_FAILED_STATE);
  raise_abort();
  set_gate(kGateClosed);
  if (first) send_abort(error);
  StatusBoard::instance().show_failed(this);
  if (tell) tell_late_ranks_once(*tell, error);
  if (first) log::write(log::Level::info, std::string("failed: ") + error.what());
}

/// Called with mutex_ held. A thread that may not use MPI leaves it to the next that does.
void Communicator::tell_late_ranks_once(Request request, const Error& error) noexcept {
  if (!ipc::mpi_usable_on_this_thread()) return;
  if (!std::exchange(late_ranks_told_, true)) tell_late_ranks(exchange_, request, error);
}

void Communicator::throw_if_failed() const {
  if (const auto cause = failure_.get())
    throw Error(cause->code, cause->rank, cause->text, cause->hint);
}

/// A failure noted before the look is found here; one noted later stores its own state after ours.
void Communicator::enter_state(librun_state_t state) {
  state_.store(state);
  if (!failure_.get()) return;
  set_gate(kGateClosed);
  state_.store(LIBRUN_FAILED_STATE);
  throw_if_failed();
}

void Communicator::replace_links(ipc::Links links) noexcept {
  const std::lock_guard lock(links_mutex_);
  links_ = std::move(links);
}

void Communicator::send_abort(const Error& error) noexcept {
  const std::lock_guard lock(links_mutex_);
  links_.send_abort(error.code(), error.rank(), error.text());
}

void Communicator::on_peer_event(const ipc::PeerEvent& event) noexcept {
  fail(Error(event.code, event.culprit, event.text));
}

/// Waits for all work of this process on the device, of which no stream is being captured.
/// @throws Rejection where one is, by the program itself
void Communicator::drain_uncaptured(ipc::Deadline deadline) {
  try {
    if (!device_->drain_all(deadline))
      throw Error(LIBRUN_TIMEOUT, rank(), who() + ": work in flight did not end in time.");
  } catch (const Error& error) {
    if (error.code() != LIBRUN_REJECTED) throw;
    throw Rejection(error.code(), rank(), who() + ": " + error.text(), error.hint());
  }
}

/// Where nothing has been touched yet. @throws Rejection while a stream is being captured
void Communicator::drain_or_reject(ipc::Deadline deadline) {
  const captures::Pause no_new_ones;
  if (captures::count() > 0)
    throw Rejection(LIBRUN_REJECTED, rank(),
                    who() + " has an open capture, of this or another communicator.",
                    "call librun_graph_end first.");
  drain_uncaptured(deadline);
}

/// Where no rejection can leave all as it was any more: waits for captures, and tells what failed
/// meanwhile.
void Communicator::drain_or_fail(ipc::Deadline deadline) {
  captures::Pause no_new_ones;
  while (!no_new_ones.wait_for_open_ones(captures::next_look(deadline))) {
    throw_if_failed();  // an abort or a death ends the wait
    if (std::chrono::steady_clock::now() >= deadline)
      throw Error(LIBRUN_TIMEOUT, rank(),
                  who() + ": a capture of another communicator did not end in time.",
                  "capture before or after a suspend or close, not while one is under way.");
  }
  try {
    drain_uncaptured(deadline);
  } catch (const Rejection& rejection) {
    throw Error(LIBRUN_INVALID_STATE, rank(), rejection.text(),
                "capture before or after a suspend or close, not while one is under way.");
  }
  if (words_->fatal != 0) throw_outcome();
}

void Communicator::raise_abort() { raise(words_->abort, 1); }

void Communicator::set_gate(std::uint32_t gate) {
  raise(control_->gate, gate);
  device_->publish_gate(*control_);
}

ipc::Watch Communicator::watch() {
  return [this](const std::vector<bool>& arrived) -> std::optional<ipc::PeerEvent> {
    // An abort of this rank's own, or what the monitor found. A rank that is gone has done its part
    // where its record is here: the phase that misses it is the same on all ranks.
    const auto cause = failure_.get();
    const bool loss = cause && cause->code == LIBRUN_PEER_LOST && cause->rank >= 0;
    if (cause && !(loss && arrived[static_cast<std::size_t>(cause->rank)])) {
      using Kind = ipc::PeerEvent::Kind;
      return ipc::PeerEvent{loss ? Kind::lost : Kind::aborted, cause->rank, cause->code,
                            cause->rank, cause->text};
    }
    if (monitor_.watches() || links_.empty()) return std::nullopt;
    return links_.poll(0, -1, &arrived);
  };
}

ipc::Deadline Communicator::deadline(int timeout_ms) const {
  const auto timeout = timeout_ms < 0 ? settings_.timeout : std::chrono::milliseconds(timeout_ms);
  return std::chrono::steady_clock::now() + timeout;
}

void Communicator::abort(const std::string& reason) {
  check_process();
  if (verdict(Call::abort) == Verdict::nothing) return;
  const Error error(LIBRUN_FAILED, rank(), fmt::format("{} aborted: {}", who(), reason));
  fail(error);
  // While suspended there are no links: the news goes where a resume will find it. When the lock is
  // taken, a call is under way that sees the failure and tells.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) tell_late_ranks_once(Request::resume, error);
}

void Communicator::check() {
  const auto lock = enter(Call::check);
  if (verdict(Call::check) == Verdict::nothing) return;
  const std::uint64_t caught_so_far = words_->caught;
  const std::uint64_t caught = caught_so_far - std::exchange(caught_told_, caught_so_far);
  if (caught != 0) {
    words_->outcome = 0;
    throw Error(LIBRUN_INVALID_STATE, rank(),
                fmt::format("{}: {} all-reduce launches found the communicator suspended and did "
                            "nothing.",
                            who(), caught),
                "replay graphs after librun_resume.");
  }
  throw_outcome();
}

void Communicator::synchronize(void* stream) {
  {
    const auto lock = enter(Call::synchronize);
    // A launch that waits too long ends itself, and knows for whom; then this is soon over. Other
    // work of the stream may take longer, which is no failure.
    const auto limit = std::chrono::steady_clock::now() + settings_.call_timeout + kDrainGrace;
    try {
      if (!device_->drain(stream, limit))
        throw Error(LIBRUN_TIMEOUT, rank(), who() + ": the stream did not finish in time.",
                    "wait again; LIBRUN_CALL_TIMEOUT_MS sets how long.");
    } catch (const Error& error) {
      if (error.code() == LIBRUN_CUDA) fail(error);
      throw;
    }
  }
  check();
}

librun_state_t Communicator::state() const { return state_.load(); }

void Communicator::refresh_board() {
  Board fresh;
  librun_stats_t& stats = fresh.stats;
  stats.struct_size = sizeof(stats);
  stats.rank = rank();
  stats.world = world();
  stats.generation = generation_;
  stats.registered_buffers = static_cast<std::uint64_t>(registry_.used());
  stats.slots_used = stats.registered_buffers;
  stats.staged_slots = static_cast<std::uint64_t>(registry_.staged());
  stats.lost_slots = static_cast<std::uint64_t>(registry_.lost());
  stats.slots_total = LIBRUN_MAX_BUFFERS;
  stats.open_mappings = peers_.entries().size();
  stats.mapped_bytes = peers_.size_bytes();
  if (arena_ && arena_->committed()) {
    stats.segments = 1;
    stats.segment_bytes = arena_->size_bytes();
  }
  for (const auto& entry : peers_.entries())
    fresh.mappings.push_back(
        {entry.rank, entry.segment, entry.mapping.data(), entry.mapping.size_bytes()});

  {
    const std::lock_guard lock(board_mutex_);
    stats.suspends = board_.stats.suspends;
    stats.last_suspend_us = board_.stats.last_suspend_us;
    stats.last_resume_us = board_.stats.last_resume_us;
    for (int i = 0; i < 3; ++i) fresh.phases[i] = std::move(board_.phases[i]);
    board_ = std::move(fresh);
  }
  show_status();
}

void Communicator::show_status() noexcept {
  try {
    CommunicatorStatus status;
    status.identity = identity_;
    status.rank = rank();
    status.world = world();
    status.device = device_id_;
    status.transition = transition_;
    status.generation = generation_;
    status.registered_buffers = static_cast<std::uint64_t>(registry_.used());
    status.staged_slots = static_cast<std::uint64_t>(registry_.staged());
    status.lost_slots = static_cast<std::uint64_t>(registry_.lost());
    status.obstacles = obstacles_;
    for (const auto& entry : peers_.entries()) {
      const auto same = [&](const auto& peer) { return peer.rank == entry.rank; };
      auto peer = std::find_if(status.peers.begin(), status.peers.end(), same);
      if (peer == status.peers.end()) peer = status.peers.insert(peer, {entry.rank, 0, 0});
      ++peer->mappings;
      peer->size_bytes += entry.mapping.size_bytes();
    }
    for (int slot = 0; world() > 1 && slot < LIBRUN_MAX_BUFFERS; ++slot)
      if (const Buffer* buffer = registry_.at(slot); buffer && !buffer->staged)
        if (buffer->places[static_cast<std::size_t>(rank())].by_handle != 0)
          status.fragile_slots.push_back({slot, buffer->size_bytes});
    StatusBoard::instance().show(this, std::move(status), state_);
  } catch (const std::exception& error) {
    log::write(log::Level::warn, std::string("the status cannot be shown: ") + error.what());
  }
}

Communicator::UnderWay::~UnderWay() {
  communicator_.transition_ = before_;
  try {
    communicator_.refresh_board();
  } catch (const std::exception& error) {
    log::write(log::Level::warn, std::string("the status cannot be shown: ") + error.what());
  }
}

librun_stats_t Communicator::stats() const {
  const Allocations::Usage usage = Allocations::instance().usage(this);
  const std::lock_guard lock(board_mutex_);
  librun_stats_t stats = board_.stats;
  stats.state = state();
  stats.calls = calls_.load();
  stats.segments += usage.segments;
  stats.segment_bytes += usage.size_bytes;
  return stats;
}

std::vector<librun_phase_t> Communicator::phases(librun_transition_t transition) const {
  const std::lock_guard lock(board_mutex_);
  return board_.phases[transition];
}

std::vector<librun_mapping_t> Communicator::mappings() const {
  const std::lock_guard lock(board_mutex_);
  return board_.mappings;
}

}  // namespace librun
