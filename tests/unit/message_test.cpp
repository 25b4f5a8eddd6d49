// SPDX-License-Identifier: Apache-2.0
// The parser of a link's packets, with sound and with hostile ones.
#include "ipc/message.hpp"

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
  CHECK(broken([](Message& m) { std::memset(m.text, 'x', sizeof(m.text)); }));
  const auto whole = packet_of(Message{});
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() - 1})
    CHECK(!parse_message(std::span(whole).first(size)));
}

TEST_CASE("no random packet does harm") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    auto packet = packet_of(Message{});
    packet.resize(random() % 8 == 0 ? random() % 700 : packet.size());
    for (int change = 0; change < 4 && !packet.empty(); ++change)
      packet[random() % packet.size()] = static_cast<std::byte>(random());
    if (const auto parsed = parse_message(packet)) {
      CHECK(parsed->rank >= 0);
      CHECK(std::memchr(parsed->text, 0, sizeof(parsed->text)) != nullptr);
    }
  }
}
