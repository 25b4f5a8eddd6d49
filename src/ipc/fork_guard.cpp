// SPDX-License-Identifier: Apache-2.0
#include "ipc/fork_guard.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace librun::ipc {
namespace {

// One bit for each descriptor number. No lock: the handler runs in a child whose other threads,
// and whatever they held, are gone.
constexpr int kMaxDescriptor = 1 << 16;
std::array<std::atomic<std::uint64_t>, kMaxDescriptor / 64> marked{};

std::uint64_t bit_of(int fd) { return std::uint64_t{1} << (fd % 64); }
std::atomic<std::uint64_t>& word_of(int fd) { return marked[static_cast<std::size_t>(fd / 64)]; }

void close_all_marked() {
  for (std::size_t word = 0; word < marked.size(); ++word) {
    const std::uint64_t bits = marked[word].exchange(0);
    for (int bit = 0; bit < 64; ++bit)
      if (bits >> bit & 1) ::close(static_cast<int>(word) * 64 + bit);
  }
}

}  // namespace

void close_in_children(int fd) noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_all_marked);
  static_cast<void>(registered);
  if (fd >= 0 && fd < kMaxDescriptor) word_of(fd).fetch_or(bit_of(fd));
}

bool forget_descriptor(int fd) noexcept {
  if (fd < 0 || fd >= kMaxDescriptor) return true;
  return (word_of(fd).fetch_and(~bit_of(fd)) & bit_of(fd)) != 0;
}

}  // namespace librun::ipc
