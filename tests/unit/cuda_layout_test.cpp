// SPDX-License-Identifier: Apache-2.0
// The layout of an arena on CUDA is plain arithmetic, the same with and without a toolkit.
#include <set>
#include <vector>

#include "kernels/cuda/geometry.hpp"
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

namespace {

ControlBlock control_of(int rank, int world, std::uint64_t generation) {
  ControlBlock control{};
  control.rank = static_cast<std::uint32_t>(rank);
  control.world = static_cast<std::uint32_t>(world);
  control.generation = generation;
  control.layout = cuda::make_layout(world, cuda::kMinArenaBytes, world);
  for (int peer = 0; peer < world; ++peer)
    control.arena[peer] = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40 | peer << 24);
  return control;
}

}  // namespace

TEST_CASE("what one rank's table calls its place with a peer, the peer's table calls the same") {
  for (int world = 2; world <= cuda::kMaxWorld; ++world) {
    std::vector<cuda::PeerTable> tables;
    for (int rank = 0; rank < world; ++rank)
      tables.push_back(cuda::make_peer_table(control_of(rank, world, 3), {}));
    const auto check = [&](auto&& rows_of, std::uint64_t begin, std::uint64_t end) {
      std::set<std::byte*> places;
      for (int rank = 0; rank < world; ++rank) {
        const cuda::PeerTable& mine = tables[static_cast<std::size_t>(rank)];
        CHECK(mine.arena[0] == control_of(rank, world, 3).arena[rank]);
        for (int k = 1; k < world; ++k) {
          CAPTURE(world, rank, k);
          const int peer = (rank + k) % world;
          const cuda::PeerTable& theirs = tables[static_cast<std::size_t>(peer)];
          std::byte* const to = rows_of(mine)[k - 1].to;
          CHECK(to == rows_of(theirs)[cuda::source_row(world, rank)].from);
          CHECK(to >= theirs.arena[0] + begin);
          CHECK(to < theirs.arena[0] + end);
          CHECK(places.insert(to).second);
        }
      }
    };
    const ArenaLayout layout = control_of(0, world, 3).layout;
    check([](const cuda::PeerTable& table) { return table.lines; }, layout.lines[0],
          layout.lines[1]);
    check([](const cuda::PeerTable& table) { return table.rings[0]; }, layout.rings[0],
          layout.rings[1]);
    check([](const cuda::PeerTable& table) { return table.rings[1]; }, layout.rings[1],
          layout.staging[0]);
  }
}

TEST_CASE("a gate is open for the tables of its own generation only") {
  std::set<std::uint32_t> gates{kGateClosed};
  for (std::uint64_t generation = 0; generation < 1000; ++generation)
    CHECK(gates.insert(cuda::make_peer_table(control_of(0, 2, generation), {}).open_gate).second);
}

TEST_CASE("a table without arenas points nowhere") {
  ControlBlock control = control_of(1, 4, 1);
  for (std::byte*& arena : control.arena) arena = nullptr;
  const cuda::PeerTable table = cuda::make_peer_table(control, {});
  for (int row = 0; row < cuda::kMaxWorld; ++row) {
    CHECK(table.lines[row].to == nullptr);
    CHECK(table.lines[row].from == nullptr);
  }
}

TEST_CASE(
    "a launch has a thread for each line while there is room, and never more than the bounds") {
  for (int world = 2; world <= cuda::kMaxWorld; ++world) {
    const ArenaLayout layout = cuda::make_layout(world, cuda::kMinArenaBytes, world);
    for (const Body body : {Body::ll, Body::one_shot, Body::two_shot}) {
      for (std::uint64_t count = 1; count < (std::uint64_t{1} << 34); count = count * 3 + 1) {
        CAPTURE(world, static_cast<int>(body), count);
        AllReduceArgs args{};
        args.body = body;
        args.count = count;
        args.dtype = LIBRUN_FLOAT32;
        const cuda::Spread spread = cuda::spread_of(args, world, cuda::bounds_of(layout));
        const std::uint32_t room = body == Body::ll ? layout.lines_per_block : layout.ring_lines;
        CHECK(spread.n_blocks >= 1);
        CHECK(spread.n_blocks <= layout.max_blocks);
        CHECK(spread.n_threads % cuda::kWarp == 0);
        CHECK(spread.n_threads <= std::min(room, cuda::kMaxThreads));
        CHECK(spread.lines * cuda::kLineBytes >= count * 4);
        const std::uint64_t parts =
            body == Body::two_shot
                ? (spread.lines + static_cast<unsigned>(world) - 1) / static_cast<unsigned>(world)
                : spread.lines;
        // Either all is one step, or the launch takes all that it may.
        const std::uint64_t step =
            std::uint64_t{spread.n_blocks} * std::min({spread.fair_lines, spread.n_threads, room});
        CHECK((step >= parts || spread.n_blocks == layout.max_blocks));
      }
    }
  }
}
