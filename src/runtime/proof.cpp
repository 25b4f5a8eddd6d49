// SPDX-License-Identifier: Apache-2.0
#include "runtime/proof.hpp"

#include <sys/random.h>

#include <algorithm>
#include <string>

#include "librun/error.hpp"

namespace librun {
namespace {

/// Whole words only; allocations start at one.
std::size_t word_offset(const BufferPlace& place) {
  return place.offset_bytes / sizeof(std::uint64_t) * sizeof(std::uint64_t);
}

}  // namespace

MappingProof::MappingProof(Device& device, ControlBlock& control, const ipc::Segment& arena,
                           const Registry& registry, const ipc::PeerTable& peers)
    : device_(device), control_(control), arena_(arena), registry_(registry), peers_(peers) {
  if (::getrandom(&nonce_, sizeof(nonce_), 0) != static_cast<ssize_t>(sizeof(nonce_)))
    nonce_ = control.generation * 0x9e3779b97f4a7c15u + control.rank;
  const auto places = registry.segments_of(static_cast<int>(control.rank));
  for (auto& segment : registry.own_segments()) {
    std::byte* const address = segment->data() + word_offset(places[segments_.size()]);
    segments_.push_back({std::move(segment), address, 0, false});
  }
}

std::uint64_t MappingProof::nonce_of(std::size_t segment_index) const {
  return nonce_ ^ (segment_index + 1) * 0xd6e8feb86659fd93u;
}

std::uint64_t* MappingProof::segment_answer(std::byte* arena, std::size_t segment_index,
                                            int peer) const {
  // A small arena has fewer places than a full table has segments: then places are shared, and the
  // later answer stands; check knows which.
  const std::size_t places = control_.layout.chunk_bytes / sizeof(std::uint64_t) / control_.world;
  const std::size_t at = segment_index % places * control_.world + static_cast<std::size_t>(peer);
  return reinterpret_cast<std::uint64_t*>(arena + control_.layout.staging[0]) + at;
}

void MappingProof::ask() {
  device_.copy(&reinterpret_cast<ProofPage*>(arena_.data())->nonce, &nonce_, sizeof(nonce_));
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Borrowed& segment = segments_[i];
    device_.copy(&segment.original, segment.address, sizeof(segment.original));
    segment.borrowed = true;
    const std::uint64_t nonce = nonce_of(i);
    device_.copy(segment.address, &nonce, sizeof(nonce));
  }
}

void MappingProof::answer() {
  const int rank = static_cast<int>(control_.rank);
  std::vector<ProbeItem> items;
  for (int peer = 0; peer < static_cast<int>(control_.world); ++peer) {
    if (peer == rank) continue;
    auto* page = reinterpret_cast<ProofPage*>(control_.arena[peer]);
    items.push_back({&page->nonce, &page->answers[rank]});
    const auto places = registry_.segments_of(peer);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& entries = peers_.entries();
      const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& candidate) {
        return candidate.rank == peer && candidate.segment == places[i].segment;
      });
      if (entry == entries.end())
        throw Error(LIBRUN_FAILED, peer,
                    "a segment of rank " + std::to_string(peer) + " is not mapped.");
      const std::byte* const word = entry->mapping.data() + word_offset(places[i]);
      items.push_back({reinterpret_cast<const std::uint64_t*>(word),
                       segment_answer(control_.arena[peer], i, rank)});
    }
  }
  device_.probe(items, rank);
}

void MappingProof::expect(std::uint64_t got, std::uint64_t nonce, int peer,
                          const char* what) const {
  if (got == proof_answer(nonce, peer)) return;
  throw Error(LIBRUN_FAILED, peer,
              "rank " + std::to_string(control_.rank) + ": rank " + std::to_string(peer) +
                  " does not see " + what + " (the nonce did not come back).",
              "the memory that it mapped is not this rank's; report this.");
}

void MappingProof::check() {
  const auto* page = reinterpret_cast<const ProofPage*>(arena_.data());
  const std::size_t places = control_.layout.chunk_bytes / sizeof(std::uint64_t) / control_.world;
  for (int peer = 0; peer < static_cast<int>(control_.world); ++peer) {
    if (peer == static_cast<int>(control_.rank)) continue;
    std::uint64_t got = 0;
    device_.copy(&got, &page->answers[peer], sizeof(got));
    expect(got, nonce_, peer, "its arena");
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (i + places < segments_.size()) continue;
      device_.copy(&got, segment_answer(arena_.data(), i, peer), sizeof(got));
      expect(got, nonce_of(i), peer, "a registered buffer");
    }
  }
  put_back();
}

void MappingProof::put_back() noexcept {
  for (Borrowed& segment : segments_) {
    if (!segment.borrowed) continue;
    segment.borrowed = false;
    try {
      device_.copy(segment.address, &segment.original, sizeof(segment.original));
    } catch (const Error&) {
      // A device that cannot copy any more has lost the buffer anyway.
    }
  }
}

}  // namespace librun
