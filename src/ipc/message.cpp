// SPDX-License-Identifier: Apache-2.0
#include "ipc/message.hpp"

#include <cstring>

#include "librun/types.h"

namespace librun::ipc {

std::optional<Message> parse_message(std::span<const std::byte> packet) {
  if (packet.size() != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, packet.data(), sizeof(message));
  const auto type = static_cast<std::uint16_t>(message.type);
  const bool known_type = type >= 1 && type <= static_cast<std::uint16_t>(MessageType::abort);
  const bool known_rank = message.rank >= 0 && message.rank < LIBRUN_MAX_WORLD;
  const bool ended = std::memchr(message.text, '\0', sizeof(message.text)) != nullptr;
  if (message.magic != Message::kMagic || message.version != Message::kVersion || !known_type ||
      !known_rank || !ended)
    return std::nullopt;
  return message;
}

}  // namespace librun::ipc
