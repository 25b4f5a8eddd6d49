// SPDX-License-Identifier: Apache-2.0
// Copies that leave the caches alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace librun::host {

/// memcpy around the caches: takes no line from a cache that holds it, and reads none before it is
/// written. Ordered by fence_streams() only: no release comes after it by itself.
inline void stream_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLineBytes = 64;
  const std::size_t head =
      (kLineBytes - reinterpret_cast<std::uintptr_t>(to) % kLineBytes) % kLineBytes;
  if (size_bytes >= head + kLineBytes) {
    std::memcpy(to, from, head);
    to += head;
    from += head;
    size_bytes -= head;
    for (; size_bytes >= kLineBytes; size_bytes -= kLineBytes) {
      __m128i part[4];
      std::memcpy(part, from, kLineBytes);
      auto* line = reinterpret_cast<__m128i*>(to);
      for (int i = 0; i < 4; ++i) _mm_stream_si128(line + i, part[i]);
      to += kLineBytes;
      from += kLineBytes;
    }
  }
#endif
  std::memcpy(to, from, size_bytes);
}

inline void fence_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace librun::host
