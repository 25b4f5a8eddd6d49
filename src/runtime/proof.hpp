// SPDX-License-Identifier: Apache-2.0
// The proof of mappings: data travel through every new mapping, both ways.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ipc/peer_table.hpp"
#include "ipc/segment.hpp"
#include "kernels/device.hpp"
#include "runtime/registry.hpp"

namespace librun {

/// Comparing sizes proves nothing: a stale private copy looks the same. So each rank writes a fresh
/// nonce into its arena and into its registered segments; every peer reads it through its mapping
/// and writes an answer into the owner's arena through its mapping; the owner checks.
///
///   owner's arena   | nonce | answers by peer |  ...  | staging: answers by (segment, peer) |
///
/// All ranks agree between the three steps. The 8 bytes around the start of a registered buffer
/// are put back by check, or by the destructor.
class MappingProof {
 public:
  MappingProof(Device& device, ControlBlock& control, const ipc::Segment& arena,
               const Registry& registry, const ipc::PeerTable& peers);
  ~MappingProof() { put_back(); }
  MappingProof(const MappingProof&) = delete;
  MappingProof& operator=(const MappingProof&) = delete;

  void ask();
  void answer();
  /// @throws Error{failed} naming the peer whose answer is wrong
  void check();

 private:
  struct Borrowed {
    std::shared_ptr<ipc::Segment> segment;
    std::byte* address;  ///< the word around the start of a registered buffer
    std::uint64_t original;
    bool borrowed;
  };
  void put_back() noexcept;
  std::uint64_t nonce_of(std::size_t segment_index) const;
  std::uint64_t* segment_answer(std::byte* arena, std::size_t segment_index, int peer) const;
  void expect(std::uint64_t got, std::uint64_t nonce, int peer, const char* what) const;

  Device& device_;
  ControlBlock& control_;
  const ipc::Segment& arena_;
  const Registry& registry_;
  const ipc::PeerTable& peers_;
  std::vector<Borrowed> segments_;
  std::uint64_t nonce_ = 0;
};

}  // namespace librun
