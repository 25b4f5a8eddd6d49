// SPDX-License-Identifier: Apache-2.0
#include "kernels/unique_handle.hpp"

#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

std::vector<int> closed;

struct CountedTraits {
  using type = int;
  static type null() noexcept { return -1; }
  static void close(type handle) noexcept { closed.push_back(handle); }
};
using Counted = librun::UniqueHandle<CountedTraits>;

}  // namespace

TEST_CASE("a handle closes once, wherever it moves") {
  closed.clear();
  {
    Counted a(7);
    Counted b(std::move(a));
    CHECK(!a);
    Counted c;
    c = std::move(b);
    CHECK(!b);
    CHECK(c.get() == 7);
    CHECK(closed.empty());
    c = Counted(8);
    CHECK(closed == std::vector<int>{7});
    Counted& self = c;
    c = std::move(self);
    CHECK(c.get() == 8);
    c.reset();
    c.reset();
  }
  CHECK(closed == std::vector<int>{7, 8});
}

TEST_CASE("a released handle is the caller's") {
  closed.clear();
  { CHECK(Counted(9).release() == 9); }
  CHECK(closed.empty());
}
