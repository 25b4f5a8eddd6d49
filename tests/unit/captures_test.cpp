// SPDX-License-Identifier: Apache-2.0
// Captures and waits for a whole device keep out of each other's way.
#include "runtime/captures.hpp"

#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace librun;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

TEST_CASE("a capture waits for the end of all pauses, and counts while it lives") {
  REQUIRE(captures::count() == 0);
  std::optional<captures::Pause> outer(std::in_place);
  std::optional<captures::Pause> inner(std::in_place);
  captures::Counted capture;
  std::thread thread([&] { capture = captures::open(Clock::now() + 30s); });
  std::this_thread::sleep_for(20ms);
  CHECK(captures::count() == 0);
  inner.reset();
  std::this_thread::sleep_for(20ms);
  CHECK(captures::count() == 0);
  outer.reset();
  thread.join();
  CHECK(capture);
  CHECK(captures::count() == 1);
  captures::Counted moved = std::move(capture);
  capture.reset();
  CHECK(captures::count() == 1);
  moved.reset();
  CHECK(captures::count() == 0);
}

TEST_CASE("a capture that is kept out too long does not count") {
  {
    const captures::Pause pause;
    CHECK_FALSE(captures::open(Clock::now() + 20ms));
    CHECK(captures::count() == 0);
  }
  CHECK(captures::open(Clock::now()));
  CHECK(captures::count() == 0);
}

TEST_CASE("a pause waits for open captures, and no new one comes meanwhile") {
  captures::Counted capture = captures::open(Clock::now());
  captures::Pause pause;
  CHECK_FALSE(pause.wait_for_open_ones(Clock::now() + 20ms));
  std::thread thread([&] {
    std::this_thread::sleep_for(20ms);
    capture.reset();
  });
  CHECK(pause.wait_for_open_ones(Clock::now() + 30s));
  CHECK_FALSE(captures::open(Clock::now()));
  thread.join();
}
