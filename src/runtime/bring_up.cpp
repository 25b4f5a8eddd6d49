// SPDX-License-Identifier: Apache-2.0
// From an MPI communicator to proved mappings: what create and resume share.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "librun/librun.h"
#include "runtime/communicator.hpp"
#include "runtime/hello.hpp"
#include "runtime/live.hpp"
#include "runtime/log.hpp"
#include "runtime/proof.hpp"
#include "runtime/selftest.hpp"
#include "runtime/suspend_request.hpp"

namespace librun {
namespace {

/// Descriptors under way on one link: few enough for the socket's buffer.
constexpr std::size_t kDescriptorsPerRound = 16;
}  // namespace

void Communicator::bring_up(Phases& phases, bool selftest) {
  std::optional<ipc::Listener> listener;
  std::vector<Hello> hellos;
  const Ballots hello_ballots = phases.run("hello", [&](Ballot& mine) {
    listener.emplace();
    Hello hello = make_hello(*listener);
    if (phases.corrupted()) hello.boot_id[0] = '?';  // another machine's
    mine.put(hello);
  });
  for (const Ballot& ballot : hello_ballots) hellos.push_back(ballot.get<Hello>());
  learn_from(hellos);
  device_id_ = hellos[static_cast<std::size_t>(rank())].device_id;
  if (identity_ == 0) {
    std::memcpy(&identity_, hellos[0].token.data(), sizeof(identity_));
    // A buffer's id of one communicator is unknown to all others of the process.
    next_buffer_id_ = (identity_ & ~std::uint64_t{0xffffffff}) + 1;
  }

  phases.run("connect", [&](Ballot&) {
    for (const Hello& hello : hellos) device_->check_peer(hello.device_id);
    if (arena_)
      arena_->commit();
    else
      arena_ = std::make_unique<ipc::Segment>(device_, 0, settings_.arena_bytes);
    std::vector<ipc::Address> addresses;
    for (const Hello& hello : hellos) addresses.push_back(hello.address);
    // Alone there is nobody to link to.
    if (world() == 1) return;
    ipc::Connected made =
        listener->connect_all(rank(), addresses, hellos[0].token, phases.work_deadline());
    replace_links({rank(), std::move(made.links)});
    if (made.error) throw Error(*made.error);
  });
  pass_descriptors(phases);
  phases.run("table", [&](Ballot&) { write_table(); });
  prove_mappings(phases);
  if (!selftest) return;
  set_gate(kGateOpen);
  // From here on ranks wait for each other's memory: a death must end these waits.
  start_monitor();
  phases.run("selftest", [&](Ballot&) { run_selftest(phases.work_deadline()); });
}

// The arena's descriptor goes first, then those of registered segments, a few a round: both sides
// know the list of each rank.
void Communicator::pass_descriptors(Phases& phases) {
  if (world() == 1) return;
  std::vector<std::vector<BufferPlace>> places(static_cast<std::size_t>(world()));
  std::size_t longest = 0;
  for (int peer = 0; peer < world(); ++peer) {
    auto& list = places[static_cast<std::size_t>(peer)];
    list = registry_.segments_of(peer);
    list.insert(list.begin(), {0, settings_.arena_bytes, 0, 0});
    longest = std::max(longest, list.size());
  }
  const auto own = registry_.own_segments();
  for (std::size_t begin = 0; begin < longest; begin += kDescriptorsPerRound) {
    const std::size_t end = begin + kDescriptorsPerRound;
    phases.run("exchange", [&](Ballot&) {
      for (std::size_t i = begin; i < std::min(end, own.size() + 1); ++i) {
        const ipc::Segment& segment = i == 0 ? *arena_ : *own[i - 1];
        if (fault::at("ipc_export", rank()) == fault::Action::fail)
          throw Error(LIBRUN_SYSTEM, rank(), who() + ": injected fault at ipc_export.");
        send_segment(segment);
      }
    });
    const Ballots opened = phases.run("open", [&](Ballot& mine) {
      SlotSet lost;
      for (int peer = 0; peer < world(); ++peer) {
        const auto& list = places[static_cast<std::size_t>(peer)];
        for (std::size_t i = begin; peer != rank() && i < std::min(end, list.size()); ++i) {
          const SlotSet slots = registry_.slots_of(peer, list[i].segment);
          const std::size_t n_users = std::max<std::size_t>(slots.count(), 1);  // an arena has none
          if (!map_next(peer, list[i], n_users, phases.work_deadline())) lost |= slots;
        }
      }
      mine.put(lost);
    });
    stage_lost(opened);
    if (phases.corrupted() && begin == 0)
      decoys_.emplace_back(device_, Memory::local, settings_.arena_bytes);
  }
}

/// A handle that the driver does not give any more is sent empty: the peers will see.
void Communicator::send_segment(const ipc::Segment& segment) {
  Exported exported;
  try {
    exported = segment.export_memory();
  } catch (const Error&) {
    if (segment.id() == 0 || !segment.by_handle()) throw;
  }
  links_.send_segment(segment.id(), segment.size_bytes(), exported);
}

/// Maps the next segment that `peer` has sent, for `n_users` buffers in it.
/// @return false when its handle cannot be opened, which is an error for an arena only
bool Communicator::map_next(int peer, const BufferPlace& place, std::size_t n_users,
                            ipc::Deadline deadline) {
  ipc::Packet packet = links_.receive_segment(peer, deadline);
  if (fault::at("ipc_open", rank()) == fault::Action::fail)
    throw Error(LIBRUN_SYSTEM, rank(), who() + ": injected fault at ipc_open.");
  if (packet.message.segment != place.segment || packet.message.size_bytes != place.segment_bytes)
    throw Error(LIBRUN_INVALID_STATE, peer,
                fmt::format("rank {} passed segment {} of {} bytes, expected {} of {}.", peer,
                            packet.message.segment, packet.message.size_bytes, place.segment,
                            place.segment_bytes));
  const Exported exported = packet.exported();
  try {
    for (std::size_t user = 0; user < n_users; ++user)
      peers_.acquire(device_, peer, place.segment, exported, place.segment_bytes);
  } catch (const Error& error) {
    if (!place.by_handle) throw;
    log::write(log::Level::info, fmt::format("segment {} of rank {} cannot be mapped ({}).",
                                             place.segment, peer, error.text()));
    return false;
  }
  return true;
}

/// What one rank could not map is staged on all.
void Communicator::stage_lost(const Ballots& opened) {
  SlotSet lost;
  for (const Ballot& ballot : opened) lost |= ballot.get<SlotSet>();
  for (int slot = 0; slot < LIBRUN_MAX_BUFFERS; ++slot) {
    const Buffer* buffer = lost.test(static_cast<std::size_t>(slot)) ? registry_.at(slot) : nullptr;
    if (!buffer) continue;
    release_places(*buffer);
    registry_.make_staged(slot);
    log::write(rank() == 0 ? log::Level::warn : log::Level::info,
               fmt::format("the registered buffer in slot {} ({} bytes) cannot be mapped any more, "
                           "as memory of cudaMalloc after a checkpoint: it goes through the arena "
                           "from now on.",
                           slot, buffer->size_bytes));
  }
}

void Communicator::release_places(const Buffer& buffer) {
  if (buffer.staged) return;
  for (int peer = 0; peer < world(); ++peer)
    if (peer != rank()) peers_.release(peer, buffer.places[static_cast<std::size_t>(peer)].segment);
}

void Communicator::write_table() {
  ControlBlock& control = *control_;
  control.rank = static_cast<std::uint32_t>(rank());
  control.world = static_cast<std::uint32_t>(world());
  control.generation = generation_;
  control.step = 0;
  control.wait_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(settings_.call_timeout).count());
  control.words = words_.get();
  control.layout = device_->layout_arena(world(), settings_.arena_bytes, ranks_on_device_);
  control.arena[rank()] = arena_->data();
  for (const auto& entry : peers_.entries())
    if (entry.segment == 0) control.arena[entry.rank] = entry.mapping.data();
  if (!decoys_.empty()) control.arena[(rank() + 1) % world()] = decoys_.back().get();
  for (int slot = 0; slot < LIBRUN_MAX_BUFFERS; ++slot)
    if (registry_.at(slot)) write_slot(slot);
  words_->fatal = 0;
  device_->publish(control);
}

void Communicator::prove_mappings(Phases& phases) {
  MappingProof proof(*device_, *control_, *arena_, registry_, peers_);
  phases.run("prove", [&](Ballot&) { proof.ask(); });
  phases.run("prove", [&](Ballot&) { proof.answer(); });
  phases.run("prove", [&](Ballot&) { proof.check(); });
}

// All algorithms run, whatever the first ones gave: a rank that left early would be waited for.
void Communicator::run_selftest(ipc::Deadline deadline) {
  if (world() == 1) return;
  const std::uint64_t call_wait_ns = control_->wait_ns;
  control_->wait_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline -
                                                           std::chrono::steady_clock::now())
          .count(),
      1));
  device_->publish(*control_);
  std::optional<Error> first_error;
  for (const SelftestCase& test : selftest_cases()) {
    SelftestData data(device_, rank(), world());
    AllReduceArgs args =
        make_args({data.send(), data.recv(), data.count(), LIBRUN_INT32, LIBRUN_SUM});
    args.body = test.body;
    args.check = false;
    args.reject = Reject::none;  // a forced zero_copy refuses plain memory
    words_->outcome = 0;
    device_->launch(args, nullptr);
    const bool ended =
        device_->drain(nullptr, deadline) && words_->outcome == 0 && words_->fatal == 0;
    try {
      throw_if_failed();
      if (!ended)
        throw Error(LIBRUN_TIMEOUT, late_rank(),
                    fmt::format("{}: the self-test of {} waited for rank {} in vain.", who(),
                                test.name, late_rank()));
      data.verify(who() + ": the self-test of " + test.name);
    } catch (const Error& error) {
      if (!first_error) first_error = error;
      if (!ended) break;  // the peer will not come to the others either
    }
  }
  control_->wait_ns = call_wait_ns;
  device_->publish(*control_);
  if (first_error) throw Error(*first_error);
}

void Communicator::start_monitor() {
  monitor_.start(links_, [this](const ipc::PeerEvent& event) { on_peer_event(event); });
}

void Communicator::become_active() {
  set_gate(kGateOpen);
  start_monitor();
  enter_state(LIBRUN_ACTIVE);
  requests_answered_ = suspend_requests();
}

std::shared_ptr<Communicator> Communicator::create(MPI_Comm comm,
                                                   const std::function<librun_config_t()>& config) {
  if (!ipc::mpi_usable())
    throw Error(LIBRUN_MPI, -1, "MPI is not running.", "call MPI_Init first.");
  if (comm == MPI_COMM_NULL)
    throw Error(LIBRUN_INVALID_ARGUMENT, -1, "the MPI communicator is MPI_COMM_NULL.",
                "ranks outside of a communicator must not create one.");
  int is_inter = 0;
  ipc::check_mpi(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
  if (is_inter)
    throw Error(LIBRUN_INVALID_ARGUMENT, -1, "the MPI communicator is an inter-communicator.",
                "merge it with MPI_Intercomm_merge.");

  int world = 0;
  ipc::check_mpi(MPI_Comm_size(comm, &world), "MPI_Comm_size");
  // A bad setting on one rank alone must reach all: it goes into the first ballot.
  std::optional<Error> bad_setting;
  std::shared_ptr<Communicator> self;
  ipc::Deadline deadline = std::chrono::steady_clock::now() + Settings{}.timeout;
  bool selftest = true;
  try {
    const Settings settings = resolve_settings(config());
    deadline = std::chrono::steady_clock::now() + settings.timeout;
    selftest = settings.selftest;
    fault::arm(fault::parse(setting_value("LIBRUN_FAULT")));
    self = make(settings, world);
  } catch (const Error& error) {
    bad_setting = error;
  }
  ipc::Exchange exchange(comm, deadline);
  Phases phases(Request::create, exchange, nullptr, deadline);
  phases.run("settings", [&](Ballot&) {
    if (bad_setting) throw Error(*bad_setting);
    const DeviceInfo& info = self->device_info_;
    if (world > info.max_world)
      throw Error(LIBRUN_UNSUPPORTED, -1,
                  fmt::format("{} ranks are more than librun takes on {} ({}).", world, info.name,
                              info.max_world));
    log::open(exchange.rank(), world);
  });
  if (exchange.rank() == 0)
    if (const std::string unknown = unknown_variables(); !unknown.empty())
      log::write(log::Level::warn, unknown);

  self->exchange_ = std::move(exchange);
  const UnderWay under_way(*self, "create");
  Phases steps(Request::create, self->exchange_, self->watch(), deadline);
  try {
    self->bring_up(steps, selftest);
    self->become_active();
  } catch (const Error& error) {
    self->fail(error);
    throw;
  }
  self->board_.phases[LIBRUN_TRANSITION_CREATE] = steps.timings();
  add_live(self);
  log::write(log::Level::info,
             fmt::format("created: world {}, device {}, arena {} bytes, {}", world,
                         self->device_->info().name, self->settings_.arena_bytes,
                         self->control_->spin_us ? "spinning" : "giving way while waiting"));
  return self;
}

}  // namespace librun
