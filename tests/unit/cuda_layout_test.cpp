// SPDX-License-Identifier: Apache-2.0
// The layout of an arena on CUDA is plain arithmetic, the same with and without a toolkit.
#include "kernels/cuda/layout.hpp"
#include "support/catch.hpp"

using namespace librun;

TEST_CASE("on CUDA too the parts of an arena fit and do not overlap") {
  for (int world = 1; world <= cuda::kMaxWorld; ++world) {
    for (int share = 1; share <= world; ++share) {
      for (const std::size_t arena_bytes : {cuda::kMinArenaBytes, std::size_t{3} << 20,
                                            cuda::kDefaultArenaBytes, std::size_t{4} << 30}) {
        CAPTURE(world, share, arena_bytes);
        const ArenaLayout layout = cuda::make_layout(world, arena_bytes, share);
        const std::uint64_t teams = static_cast<std::uint64_t>(world) * layout.max_blocks;
        const std::uint64_t lines_bytes = teams * layout.lines_per_block * cuda::kLineBytes;
        const std::uint64_t ring_bytes = static_cast<std::uint64_t>(std::max(world - 1, 1)) *
                                         cuda::kRingSlots * layout.max_blocks * layout.ring_lines *
                                         cuda::kLineBytes;
        // The proof writes its answers where staging is, and its page in front of the flags.
        CHECK(layout.flags >= sizeof(ProofPage));
        CHECK(layout.lines[0] >= layout.flags + teams * cuda::kFlagBytes);
        CHECK(layout.lines[1] >= layout.lines[0] + lines_bytes);
        CHECK(layout.rings[0] >= layout.lines[1] + lines_bytes);
        CHECK(layout.rings[1] >= layout.rings[0] + ring_bytes);
        CHECK(layout.staging[0] >= layout.rings[1] + ring_bytes);
        CHECK(layout.staging[0] + layout.chunk_bytes <= arena_bytes);
        CHECK(layout.chunk_bytes >= arena_bytes / 8);
      }
    }
  }
}

TEST_CASE("every block has room, whole vectors, and all that wait fit on a device they share") {
  for (int world = 1; world <= cuda::kMaxWorld; ++world) {
    for (int share = 1; share <= world; ++share) {
      const ArenaLayout layout = cuda::make_layout(world, cuda::kMinArenaBytes, share);
      CAPTURE(world, share);
      CHECK(layout.max_blocks >= 1);
      CHECK(layout.max_blocks * static_cast<unsigned>(share) <= cuda::kMaxBlocks);
      CHECK(layout.lines_per_block >= cuda::kAnnouncementLines);
      CHECK(layout.lines_per_block <= cuda::kMaxLinesPerBlock);
      CHECK(layout.ring_lines >= 32);
      CHECK(layout.ring_lines <= cuda::kMaxRingLines);
      for (const std::uint64_t part : {layout.lines[0], layout.rings[0], layout.rings[1],
                                       layout.staging[0], layout.chunk_bytes})
        CHECK(part % 16 == 0);
    }
  }
}
