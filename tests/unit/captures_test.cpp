// SPDX-License-Identifier: Apache-2.0
// Captures and waits for a whole device keep out of each other's way.
#include "runtime/captures.hpp"

#include <chrono>
#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace librun;
using Clock = std::chrono::steady_clock;

TEST_CASE("a capture waits for the end of a pause, and is counted until it is closed") {
  REQUIRE(captures::count() == 0);
  std::optional<captures::Pause> outer(std::in_place);
  std::optional<captures::Pause> inner(std::in_place);
  std::optional<bool> opened;
  std::thread thread([&] { opened = captures::open(Clock::now() + std::chrono::seconds(30)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(captures::count() == 0);
  inner.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(captures::count() == 0);
  outer.reset();
  thread.join();
  CHECK(opened == true);
  CHECK(captures::count() == 1);
  captures::close();
  CHECK(captures::count() == 0);
}

TEST_CASE("a capture that is kept out too long is not counted") {
  {
    const captures::Pause pause;
    CHECK_FALSE(captures::open(Clock::now() + std::chrono::milliseconds(20)));
    CHECK(captures::count() == 0);
  }
  CHECK(captures::open(Clock::now()));
  captures::close();
}
