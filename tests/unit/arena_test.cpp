// SPDX-License-Identifier: Apache-2.0
#include "kernels/arena.hpp"

#include "kernels/device.hpp"
#include "kernels/host/slices.hpp"
#include "support/catch.hpp"

using namespace librun;

TEST_CASE("the parts of an arena fit and do not overlap, for every world") {
  for (int place = 0; place < 3 * LIBRUN_MAX_WORLD; ++place) {
    const std::size_t sizes[] = {kMinArenaBytes, std::size_t{1} << 20, std::size_t{3} << 20};
    const std::size_t arena_bytes = sizes[place % 3];
    const int world = place / 3 + 1;
    CAPTURE(world, arena_bytes);
    const ArenaLayout layout = make_arena_layout(world, arena_bytes);
    CHECK(layout.lines[0] >= sizeof(ProofPage));
    CHECK(layout.lines[1] >= layout.lines[0] + kLinesPerParity * sizeof(Line));
    CHECK(layout.staging[0] >= layout.lines[1] + kLinesPerParity * sizeof(Line));
    CHECK(layout.staging[1] == layout.staging[0] + layout.chunk_bytes);
    CHECK(layout.result[0] == layout.staging[1] + layout.chunk_bytes);
    CHECK(layout.result[1] == layout.result[0] + layout.slice_bytes);
    CHECK(layout.result[1] + layout.slice_bytes <= arena_bytes);
    CHECK(layout.chunk_bytes >= kPageBytes);
  }
}

TEST_CASE("the default arena has room for what the algorithms take at once, and little more") {
  const auto device = make_host_device("auto");
  for (int world = 1; world <= LIBRUN_MAX_WORLD; ++world) {
    const std::size_t arena_bytes = device->default_arena_bytes(world);
    const std::size_t chunk_bytes = host::chunk_bytes_for(world);
    CAPTURE(world, arena_bytes, chunk_bytes);
    CHECK(arena_bytes >= device->info().min_arena_bytes);
    CHECK(arena_bytes % kPageBytes == 0);
    CHECK(make_arena_layout(world, arena_bytes).chunk_bytes >= chunk_bytes);
    CHECK(arena_bytes <= 4 * chunk_bytes + 12 * kPageBytes * static_cast<std::size_t>(world));
  }
}

TEST_CASE("slices cover a chunk in order and fit the result area") {
  for (int world = 1; world <= LIBRUN_MAX_WORLD; ++world) {
    const ArenaLayout layout = make_arena_layout(world, std::size_t{1} << 20);
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{8}, std::size_t{4104},
                                    static_cast<std::size_t>(layout.chunk_bytes)}) {
      std::size_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const host::Slice slice = host::slice_of(rank, world, chunk);
        CHECK(slice.offset_bytes == next);
        CHECK(slice.size_bytes <= layout.slice_bytes);
        next += slice.size_bytes;
      }
      CHECK(next == chunk);
    }
  }
}

TEST_CASE("an epoch of another generation or step never matches") {
  CHECK(make_epoch(0, 5) != make_epoch(1, 5));
  CHECK(make_epoch(3, 5) != make_epoch(3, 7));
  CHECK((make_epoch(~0u, ~std::uint64_t{0}) & kRejectMask) == 0);
}
