// SPDX-License-Identifier: Apache-2.0
// The registered buffers of one communicator and their slots in the table.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ipc/segment.hpp"
#include "kernels/control_block.hpp"

namespace librun {

/// Where one rank's part of a registered buffer lies.
struct BufferPlace {
  std::uint64_t segment;  ///< id of its segment; 0: the memory cannot be exported
  std::uint64_t segment_bytes;
  std::uint64_t offset_bytes;
  std::uint64_t by_handle;  ///< 1: a checkpoint of its owner makes it impossible to map again
};

using SlotSet = std::bitset<LIBRUN_MAX_BUFFERS>;

struct Buffer {
  std::uint64_t id;
  std::byte* address;
  std::size_t size_bytes;
  std::shared_ptr<ipc::Segment> segment;  ///< keeps the memory; null: not ours
  std::vector<BufferPlace> places;        ///< by rank
  bool staged;                            ///< some rank's part cannot be exported
  bool lost = false;                      ///< staged, but was mapped once
};

/// Slots are handed out lowest first and returned; all ranks do so in the same order.
/// Not thread-safe.
class Registry {
 public:
  /// The lowest free slot. @return nothing when the table is full
  std::optional<int> free_slot() const;
  void insert(int slot, Buffer buffer);
  void erase(int slot);

  std::optional<int> find_id(std::uint64_t id) const;
  /// A slot whose buffer holds the whole range, mapped ones before staged ones; -1: none.
  int find_range(const std::byte* address, std::size_t size_bytes) const;
  const Buffer* at(int slot) const;
  /// Peers cannot map it any more.
  void make_staged(int slot);

  int used() const { return used_; }
  int staged() const { return staged_; }
  int lost() const { return lost_; }
  bool any_mapped() const { return used_ > staged_; }

  /// Segments that hold mapped parts of `rank`, each once, in the order of slots.
  std::vector<BufferPlace> segments_of(int rank) const;
  /// The slots whose part of `rank` lies in `segment` and is mapped.
  SlotSet slots_of(int rank, std::uint64_t segment) const;
  /// This rank's own, in the same order.
  std::vector<std::shared_ptr<ipc::Segment>> own_segments() const;

  /// Equal on all ranks when they have registered the same.
  std::uint64_t digest() const;

 private:
  std::array<std::optional<Buffer>, LIBRUN_MAX_BUFFERS> slots_;
  int used_ = 0;  // counted here, since every call asks
  int staged_ = 0;
  int lost_ = 0;
};

}  // namespace librun
