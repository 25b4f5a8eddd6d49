// SPDX-License-Identifier: Apache-2.0
// What a rank says at the end of a phase when it knows of an abort.
#include "runtime/agreement.hpp"
#include "support/catch.hpp"

using namespace librun;
using Kind = ipc::PeerEvent::Kind;

namespace {

constexpr int kWorld = 4;

ipc::Watch tells(Kind kind) {
  return [kind](const std::vector<bool>& arrived) {
    CHECK(arrived == std::vector<bool>(kWorld, false));
    return ipc::PeerEvent{kind, 3, LIBRUN_FAILED, 3, "rank 3 aborted: pump on fire"};
  };
}

}  // namespace

TEST_CASE("an abort that is known before the vote is in the ballot") {
  Ballot mine = make_ballot(Request::resume, "hello");
  SECTION("of a phase that went well") {}
  SECTION("of one that is refused: nobody may go on as before") {
    mine.set_error(Rejection(LIBRUN_REJECTED, 0, "an open capture"));
  }
  take_news(mine, tells(Kind::aborted), kWorld);
  CHECK(mine.status == LIBRUN_FAILED);
  CHECK(mine.culprit == 3);
  CHECK(mine.rejected == 0);
  CHECK(std::string(mine.text) == "rank 3 aborted: pump on fire");
}

TEST_CASE("a ballot keeps its own error, and says nothing of a loss") {
  Ballot mine = make_ballot(Request::resume, "open");
  take_news(mine, tells(Kind::lost), kWorld);
  CHECK(mine.status == LIBRUN_OK);
  take_news(mine, nullptr, kWorld);
  CHECK(mine.status == LIBRUN_OK);
  mine.set_error(Error(LIBRUN_SYSTEM, 1, "no memory"));
  take_news(mine, tells(Kind::aborted), kWorld);
  CHECK(std::string(mine.text) == "no memory");
}
