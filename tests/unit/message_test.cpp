// SPDX-License-Identifier: Apache-2.0
// The parser of a link's packets, with sound and with hostile ones.
#include "ipc/message.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "librun/types.h"
#include "support/catch.hpp"

using namespace librun::ipc;

namespace {

std::vector<std::byte> packet_of(const Message& message) {
  std::vector<std::byte> packet(sizeof(message));
  std::memcpy(packet.data(), &message, sizeof(message));
  return packet;
}

}  // namespace

TEST_CASE("a sound message comes through") {
  Message message;
  message.type = MessageType::abort;
  message.rank = 3;
  message.culprit = 2;
  message.code = LIBRUN_PEER_LOST;
  std::strcpy(message.text, "rank 2 is gone");
  const auto parsed = parse_message(packet_of(message));
  REQUIRE(parsed);
  CHECK(parsed->rank == 3);
  CHECK(std::string(parsed->text) == "rank 2 is gone");
}

TEST_CASE("what is not a message is refused") {
  const auto broken = [](auto change) {
    Message message;
    change(message);
    return !parse_message(packet_of(message));
  };
  CHECK(broken([](Message& m) { m.magic ^= 1; }));
  CHECK(broken([](Message& m) { m.version = 99; }));
  CHECK(broken([](Message& m) { m.type = static_cast<MessageType>(0); }));
  CHECK(broken([](Message& m) { m.type = static_cast<MessageType>(4); }));
  CHECK(broken([](Message& m) { m.rank = -1; }));
  CHECK(broken([](Message& m) { m.rank = LIBRUN_MAX_WORLD; }));
  CHECK(broken([](Message& m) { m.culprit = -2; }));
  CHECK(broken([](Message& m) { m.culprit = LIBRUN_MAX_WORLD; }));
  CHECK(broken([](Message& m) { m.code = -1; }));
  CHECK(broken([](Message& m) { m.code = LIBRUN_MPI + 1; }));
  CHECK(broken([](Message& m) { m.type = MessageType::abort; }));  // of no failure
  CHECK(broken([](Message& m) { m.by_handle = 2; }));
  CHECK(broken([](Message& m) { std::memset(m.text, 'x', sizeof(m.text)); }));
  const auto whole = packet_of(Message{});
  for (std::size_t size = 0; size < whole.size(); ++size)
    if (parse_message(std::span(whole).first(size))) FAIL(size << " bytes are taken for a message");
  auto longer = whole;
  longer.push_back(std::byte{0});
  CHECK(!parse_message(longer));
}

TEST_CASE("whatever is changed, added or cut off, what is taken has its fields in range") {
  std::mt19937_64 random(20261130);
  int taken = 0;
  for (int round = 0; round < 200000; ++round) {
    Message message;
    message.type = static_cast<MessageType>(1 + random() % 3);
    message.rank = static_cast<int>(random() % LIBRUN_MAX_WORLD);
    message.code = LIBRUN_TIMEOUT;
    auto packet = packet_of(message);
    if (random() % 8 == 0) packet.resize(random() % 1000);
    // Mostly in the head, where the fields are.
    for (std::size_t change = random() % 4; change > 0 && !packet.empty(); --change)
      packet[random() % (random() % 2 ? packet.size() : std::min<std::size_t>(40, packet.size()))] =
          static_cast<std::byte>(random());
    if (random() % 16 == 0)
      for (std::byte& byte : packet) byte = static_cast<std::byte>(random());
    const auto parsed = parse_message(packet);
    if (!parsed) continue;
    ++taken;
    const auto type = static_cast<int>(parsed->type);
    const bool sound = type >= 1 && type <= 3 && parsed->rank >= 0 &&
                       parsed->rank < LIBRUN_MAX_WORLD && parsed->culprit >= -1 &&
                       parsed->culprit < LIBRUN_MAX_WORLD && parsed->code >= LIBRUN_OK &&
                       parsed->code <= LIBRUN_MPI && parsed->by_handle <= 1 &&
                       std::memchr(parsed->text, 0, sizeof(parsed->text)) != nullptr;
    if (!sound) FAIL("round " << round << " gave a message that is not sound");
  }
  CHECK(taken > 20000);
}
