// SPDX-License-Identifier: Apache-2.0
// All mappings of one communicator: one for each peer segment, however often it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/mapping.hpp"

namespace librun::ipc {

/// Not thread-safe.
class PeerTable {
 public:
  struct Entry {
    int rank;
    std::uint64_t segment;
    unsigned users;
    Mapping mapping;
  };

  /// Takes one more user of the segment, mapping it on the first.
  /// @return where it is mapped @throws Error{system}
  std::byte* acquire(std::shared_ptr<Device> device, int rank, std::uint64_t segment,
                     const Exported& exported, std::size_t size_bytes);
  /// Gives one user back; the last one closes. @return 0 or errno
  int release(int rank, std::uint64_t segment) noexcept;

  /// Closes everything once and goes on after an error. @return the first errno, 0 when all closed
  int close_all() noexcept;

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size_bytes() const;

 private:
  Entry* find(int rank, std::uint64_t segment);

  std::vector<Entry> entries_;
};

}  // namespace librun::ipc
