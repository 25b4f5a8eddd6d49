// SPDX-License-Identifier: Apache-2.0
// Registered buffers, and the memory that can be registered.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/allocations.hpp"
#include "runtime/communicator.hpp"

namespace librun {
namespace {

struct Place {
  BufferPlace place;
  std::uint64_t size_bytes;
};

}  // namespace

std::uint64_t Communicator::register_buffer(void* address, std::size_t size_bytes) {
  const auto lock = enter(Call::register_buffer);
  Buffer buffer{next_buffer_id_, static_cast<std::byte*>(address), size_bytes, nullptr, {}, false};
  const auto slot = registry_.free_slot();
  // Descriptors travel on the links: the monitor must not take them for news.
  monitor_.stop();
  try {
    guarded(Request::register_, [&] { agree_on_places(buffer, slot.has_value()); });
  } catch (const Rejection&) {
    start_monitor();
    throw;
  }
  ++next_buffer_id_;
  const std::uint64_t id = buffer.id;
  registry_.insert(*slot, std::move(buffer));
  write_slot(*slot);
  device_->publish(*control_);
  start_monitor();
  refresh_board();
  return id;
}

/// Fills in where each rank's part lies, and maps the peers' parts when all can be.
void Communicator::agree_on_places(Buffer& buffer, bool has_slot) {
  // A peer may have come to this phase and died there before this rank's monitor was stopped.
  if (const auto cause = failure_.get())
    throw Error(cause->code, cause->rank, "register failed in phase places: " + cause->text,
                cause->hint);
  Phases phases(Request::register_, exchange_, watch(), deadline(-1));
  const Ballots ballots = phases.run("places", [&](Ballot& mine) {
    if (!buffer.address || buffer.size_bytes == 0)
      throw Rejection(LIBRUN_INVALID_ARGUMENT, rank(), "the buffer is null or empty.");
    if (!has_slot)
      throw Rejection(LIBRUN_UNSUPPORTED, rank(),
                      fmt::format("all {} slots are in use.", LIBRUN_MAX_BUFFERS),
                      "unregister buffers that are not needed.");
    Located located = Allocations::instance().locate(buffer.address, buffer.size_bytes);
    if (!located.segment)
      located = Allocations::instance().locate_foreign(device_, buffer.address, buffer.size_bytes);
    buffer.segment = located.segment;
    BufferPlace place{};
    if (located.segment)
      place = {located.segment->id(), located.segment->size_bytes(), located.offset_bytes,
               located.segment->by_handle()};
    mine.put(Place{place, buffer.size_bytes});
  });
  const std::uint64_t first_bytes = ballots[0].get<Place>().size_bytes;
  for (std::size_t peer = 0; peer < ballots.size(); ++peer) {
    const auto theirs = ballots[peer].get<Place>();
    if (theirs.size_bytes != first_bytes)
      throw Rejection(LIBRUN_INVALID_ARGUMENT, static_cast<int>(peer),
                      fmt::format("register: rank {} has {} bytes, rank 0 has {}.", peer,
                                  theirs.size_bytes, first_bytes),
                      "register the same size on all ranks.");
    buffer.places.push_back(theirs.place);
    buffer.staged = buffer.staged || theirs.place.segment == 0;
  }
  if (!buffer.staged && world() > 1) map_places(buffer, phases);
}

void Communicator::map_places(Buffer& buffer, Phases& phases) {
  phases.run("exchange", [&](Ballot&) { send_segment(*buffer.segment); });
  std::vector<int> mapped;
  const Ballots opened = phases.run("open", [&](Ballot& mine) {
    std::uint32_t lost = 0;
    for (int peer = 0; peer < world(); ++peer) {
      if (peer == rank()) continue;
      if (map_next(peer, buffer.places[static_cast<std::size_t>(peer)], 1, phases.work_deadline()))
        mapped.push_back(peer);
      else
        lost = 1;
    }
    mine.put(lost);
  });
  for (const Ballot& ballot : opened)
    buffer.staged = buffer.staged || ballot.get<std::uint32_t>() != 0;
  if (!buffer.staged) return;
  for (const int peer : mapped)
    peers_.release(peer, buffer.places[static_cast<std::size_t>(peer)].segment);
}

void Communicator::write_slot(int slot) {
  Slot row{};
  if (const Buffer* buffer = registry_.at(slot)) {
    row.live = 1;
    row.staged = buffer->staged;
    row.size_bytes = buffer->size_bytes;
    row.number = static_cast<std::uint16_t>(buffer->id);
    row.base[rank()] = buffer->address;
    for (const auto& entry : peers_.entries()) {
      const BufferPlace& place = buffer->places[static_cast<std::size_t>(entry.rank)];
      if (!buffer->staged && entry.segment != 0 && entry.segment == place.segment)
        row.base[entry.rank] = entry.mapping.data() + place.offset_bytes;
    }
  }
  control_->slots[slot] = row;
}

void Communicator::unregister_buffer(std::uint64_t id) {
  const auto lock = enter(Call::unregister_buffer);
  const auto slot = registry_.find_id(id);
  const auto unknown = [&] {
    return Rejection(LIBRUN_INVALID_ARGUMENT, rank(), "no such registered buffer.",
                     "pass a handle of librun_register of this communicator, once.");
  };
  if (verdict(Call::unregister_buffer) == Verdict::local) {
    if (!slot) throw unknown();
    if (state() == LIBRUN_FAILED_STATE && !quiesce())
      throw Rejection(LIBRUN_TIMEOUT, rank(), who() + ": work in flight does not end.");
  } else {
    guarded(Request::unregister, [&] {
      Phases phases(Request::unregister, exchange_, watch(), deadline(-1));
      const Ballots ballots = phases.run("agree", [&](Ballot& mine) {
        if (!slot) throw unknown();
        // Calls that were made before may still use its mappings.
        drain_or_reject(phases.work_deadline());
        mine.put(id);
      });
      for (std::size_t peer = 0; peer < ballots.size(); ++peer)
        if (ballots[peer].get<std::uint64_t>() != ballots[0].get<std::uint64_t>())
          throw Rejection(
              LIBRUN_INVALID_ARGUMENT, static_cast<int>(peer),
              fmt::format("unregister: rank {} passed another buffer than rank 0.", peer));
    });
  }
  if (const Buffer* buffer = registry_.at(*slot)) release_places(*buffer);
  registry_.erase(*slot);
  write_slot(*slot);
  if (state() == LIBRUN_ACTIVE) device_->publish(*control_);
  refresh_board();
}

void* Communicator::allocate(std::size_t size_bytes) {
  const auto lock = enter(Call::allocate);
  if (size_bytes == 0 || size_bytes > (std::size_t{1} << 46))
    throw Error(LIBRUN_INVALID_ARGUMENT, rank(),
                fmt::format("{}: malloc of {} bytes.", who(), size_bytes), "ask for 1 to 2^46.");
  return Allocations::instance().allocate(device_, size_bytes, this)->data();
}

void Communicator::deallocate(void* address) {
  const auto lock = enter(Call::deallocate);
  if (!address) return;
  // As cudaFree: what was launched before may still use it.
  if (state() != LIBRUN_CLOSED) drain_or_reject(deadline(-1));
  Allocations::instance().free(address);
}

}  // namespace librun
