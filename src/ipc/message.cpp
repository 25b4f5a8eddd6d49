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
  const bool known_culprit = message.culprit >= -1 && message.culprit < LIBRUN_MAX_WORLD;
  const bool known_code = message.code >= LIBRUN_OK && message.code <= LIBRUN_MPI;
  const bool is_failure = message.code > LIBRUN_ALREADY_THERE;
  const bool ended = std::memchr(message.text, '\0', sizeof(message.text)) != nullptr;
  if (message.magic != Message::kMagic || message.version != Message::kVersion || !known_type ||
      !known_rank || !known_culprit || !known_code || message.by_handle > 1 || !ended ||
      (message.type == MessageType::abort && !is_failure))
    return std::nullopt;
  return message;
}

}  // namespace librun::ipc
