// SPDX-License-Identifier: Apache-2.0
// What two ranks say to each other over their link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace librun::ipc {

using Token = std::array<std::uint8_t, 16>;

enum class MessageType : std::uint16_t {
  hello = 1,  ///< first on a link: who connects, and the token of this job
  segment,    ///< how to map one: carries its file descriptor, or has a handle
  abort       ///< the sender has failed: why, and which rank was first
};

/// One packet. Same machine, same build: fields travel as they lie in memory.
struct Message {
  static constexpr std::uint32_t kMagic = 0x6c72756e;
  static constexpr std::uint16_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  MessageType type = MessageType::hello;
  std::int32_t rank = 0;         ///< of the sender
  std::int32_t code = 0;         ///< abort: librun_status_t
  std::int32_t culprit = 0;      ///< abort: the first rank that failed, -1 when unknown
  std::uint32_t by_handle = 0;   ///< segment: there is no descriptor
  std::uint64_t segment = 0;     ///< segment: its id
  std::uint64_t size_bytes = 0;  ///< segment
  std::array<std::byte, 64> handle{};
  Token token{};        ///< hello
  char text[512] = {};  ///< abort
};

/// @return nothing for a packet of a wrong length, magic or version, with a field out of its range,
///         or whose text has no end
std::optional<Message> parse_message(std::span<const std::byte> packet);

}  // namespace librun::ipc
