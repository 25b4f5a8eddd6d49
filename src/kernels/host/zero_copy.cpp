// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/host/bodies.hpp"
#include "kernels/host/slices.hpp"

namespace librun::host {
namespace {

/// What is reduced before it is copied to the peers: fits the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{8} << 10;

struct Peers {
  const std::byte* send[LIBRUN_MAX_WORLD];
  std::byte* recv[LIBRUN_MAX_WORLD];
  bool all_send = true;
  bool all_recv = true;
};

/// Where a rank's range is mapped here; null when the slot is staged, too short, or not the
/// buffer's any more.
std::byte* resolve(const ControlBlock& control, int slot, unsigned number, std::uint64_t offset,
                   std::size_t size_bytes, int rank) {
  if (slot < 0 || slot >= LIBRUN_MAX_BUFFERS) return nullptr;
  const Slot& row = control.slots[slot];
  if (!row.live || row.staged || row.number != number || offset > row.size_bytes ||
      size_bytes > row.size_bytes - offset)
    return nullptr;
  return row.base[rank] + offset;
}

Peers resolve_all(const Work& work) {
  Peers peers;
  for (int rank = 0; rank < work.steps.world(); ++rank) {
    const Announcement call = work.steps.announced(rank);
    const ControlBlock& control = work.steps.control();
    const std::size_t size_bytes = work.size_bytes();
    peers.send[rank] =
        resolve(control, call.send_slot, call.send_number, call.send_offset, size_bytes, rank);
    peers.recv[rank] =
        resolve(control, call.recv_slot, call.recv_number, call.recv_offset, size_bytes, rank);
    peers.all_send = peers.all_send && peers.send[rank];
    peers.all_recv = peers.all_recv && peers.recv[rank];
  }
  return peers;
}

/// Each rank reduces its slice of the whole and writes it to every output. In place is safe: only
/// the owner of a slice touches that slice, of any buffer, before the closing step.
void push_results(const Work& work, const Peers& peers) {
  Steps& steps = work.steps;
  const Slice own = slice_of(steps.rank(), steps.world(), work.size_bytes());
  const void* sources[LIBRUN_MAX_WORLD];
  for (std::size_t done = 0; done < own.size_bytes; done += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, own.size_bytes - done);
    const std::size_t offset = own.offset_bytes + done;
    for (int peer = 0; peer < steps.world(); ++peer) sources[peer] = peers.send[peer] + offset;
    std::byte* block = work.args.recv + offset;
    work.reduce(block, sources, steps.world(), bytes / work.element_bytes);
    for (int peer = 0; peer < steps.world(); ++peer)
      if (peer != steps.rank()) std::memcpy(peers.recv[peer] + offset, block, bytes);
  }
  steps.begin();
  steps.publish();
  steps.wait_all();
}

/// Reduces slices of the peers' inputs into the arena and gathers from there, a step a chunk. After
/// the step of a chunk nobody reads its inputs any more, so the gather may overwrite them.
void pull_inputs(const Work& work, const Peers& peers) {
  Steps& steps = work.steps;
  const std::size_t chunk_bytes = steps.control().layout.chunk_bytes;
  const std::size_t size_bytes = work.size_bytes();
  const void* sources[LIBRUN_MAX_WORLD];
  for (std::size_t offset = 0; offset < size_bytes; offset += chunk_bytes) {
    const std::size_t bytes = std::min(chunk_bytes, size_bytes - offset);
    const Slice own = slice_of(steps.rank(), steps.world(), bytes);
    steps.begin();
    for (int peer = 0; peer < steps.world(); ++peer)
      sources[peer] = peers.send[peer] + offset + own.offset_bytes;
    work.reduce(steps.result(steps.rank()), sources, steps.world(),
                own.size_bytes / work.element_bytes);
    steps.publish();
    if (!steps.wait_all()) return;
    for (int peer = 0; peer < steps.world(); ++peer) {
      const Slice slice = slice_of(peer, steps.world(), bytes);
      std::memcpy(work.args.recv + offset + slice.offset_bytes, steps.result(peer),
                  slice.size_bytes);
    }
  }
}

}  // namespace

// The announcement before this body told every rank's slots and offsets, so all take one branch.
void run_zero_copy(const Work& work) {
  const Peers peers = resolve_all(work);
  if (peers.all_send && peers.all_recv) {
    push_results(work, peers);
  } else if (peers.all_send) {
    pull_inputs(work, peers);
  } else {
    run_two_shot(work);
  }
}

}  // namespace librun::host
