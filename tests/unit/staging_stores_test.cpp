// SPDX-License-Identifier: Apache-2.0
// Copies around the caches, and when a rank changes over to them.
#include "kernels/host/staging_stores.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace librun::host;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kLines = 128;
constexpr nanoseconds kFast{kLines * 5};
constexpr nanoseconds kSlow{kLines * 30};

void note(StagingStores& stores, nanoseconds elapsed, int times) {
  for (int i = 0; i < times; ++i) stores.note(elapsed, kLines * 64);
}

/// Bytes of `to` after a copy of `size_bytes` from `from_at` to `to_at`, all else 0xee.
template <class Copy>
void check_copy(std::size_t from_at, std::size_t to_at, std::size_t size_bytes, Copy copy) {
  std::vector<std::byte> from(from_at + size_bytes + 1);  // never null
  std::vector<std::byte> to(to_at + size_bytes + 64, std::byte{0xee});
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  copy(to.data() + to_at, from.data() + from_at, size_bytes);
  bool same = true;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool inside = i >= to_at && i < to_at + size_bytes;
    same = same && to[i] == (inside ? from[from_at + i - to_at] : std::byte{0xee});
  }
  INFO("from " << from_at << ", to " << to_at << ", " << size_bytes << " bytes");
  CHECK(same);
}

}  // namespace

TEST_CASE("a copy around the caches copies these bytes and no others") {
  for (const std::size_t size_bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 4096, 5001})
    for (const std::size_t from_at : {0, 1, 8, 63})
      for (const std::size_t to_at : {0, 2, 16, 61})
        check_copy(from_at, to_at, size_bytes, [](auto* to, auto* from, std::size_t bytes) {
          stream_copy(to, from, bytes);
          fence_streams();
        });
}

TEST_CASE("stores that are slow four times in a row go around the caches, until one is not") {
  StagingStores stores;
  note(stores, kSlow, 3);
  CHECK_FALSE(stores.around());
  note(stores, kFast, 1);  // what was slow was something else
  note(stores, kSlow, 3);
  CHECK_FALSE(stores.around());
  note(stores, kSlow, 1);
  CHECK(stores.around());
  note(stores, kSlow, 5);
  CHECK(stores.around());
  note(stores, kFast, 1);
  CHECK_FALSE(stores.around());
}

TEST_CASE("what is copied is right whichever way it goes, and through a trial") {
  StagingStores stores;
  const auto copy = [&](auto* to, auto* from, std::size_t bytes) {
    stores.copy_first(to, from, bytes / 2);
    stores.copy(to + bytes / 2, from + bytes / 2, bytes - bytes / 2);
    stores.fence();
  };
  for (int i = 0; i < 10; ++i) check_copy(3, 64, 9000, copy);
  for (int i = 0; i < 200; ++i) {
    if (!stores.around()) note(stores, kSlow, 4);
    check_copy(3, 64, 9000, copy);
  }
}
