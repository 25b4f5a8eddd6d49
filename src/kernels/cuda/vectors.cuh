// SPDX-License-Identifier: Apache-2.0
// Sixteen bytes at a time, from and to memory of any alignment and length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/element.cuh"

namespace librun::cuda {

inline constexpr std::uint64_t kVectorBytes = 16;

template <class T>
using Vector = Packed<T, 4>;

__device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0;
}

/// Memory of the user: aligned to T only, and ending anywhere.
template <class T>
struct UserRange {
  std::byte* base;
  std::uint64_t size_bytes;
  bool aligned;

  __device__ UserRange(const std::byte* at, std::uint64_t bytes)
      : base(const_cast<std::byte*>(at)), size_bytes(bytes), aligned(is_aligned(at)) {}

  /// @param at a multiple of 16; what lies beyond the end reads as zero
  __device__ Vector<T> load(std::uint64_t at) const {
    Vector<T> value;
    if (aligned && at + kVectorBytes <= size_bytes) {
      const uint4 words = __ldcg(reinterpret_cast<const uint4*>(base + at));
      value.words[0] = words.x;
      value.words[1] = words.y;
      value.words[2] = words.z;
      value.words[3] = words.w;
      return value;
    }
    for (std::uint32_t& word : value.words) word = 0;
#pragma unroll
    for (int i = 0; i < Vector<T>::kElements; ++i)
      if (at + i * sizeof(T) < size_bytes)
        value.elements[i] = reinterpret_cast<const T*>(base + at)[i];
    return value;
  }
  __device__ void store(std::uint64_t at, const Vector<T>& value) const {
    if (aligned && at + kVectorBytes <= size_bytes) {
      *reinterpret_cast<uint4*>(base + at) =
          make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]);
      return;
    }
#pragma unroll
    for (int i = 0; i < Vector<T>::kElements; ++i)
      if (at + i * sizeof(T) < size_bytes) reinterpret_cast<T*>(base + at)[i] = value.elements[i];
  }
};

/// Memory of an arena: always whole vectors. Past the first-level cache, which does not see what
/// peers write.
template <class T>
__device__ inline Vector<T> load_arena(const std::byte* at) {
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(at));
  Vector<T> value;
  value.words[0] = words.x;
  value.words[1] = words.y;
  value.words[2] = words.z;
  value.words[3] = words.w;
  return value;
}
template <class T>
__device__ inline void store_arena(std::byte* at, const Vector<T>& value) {
  *reinterpret_cast<uint4*>(at) =
      make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]);
}

__device__ inline std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}
/// How many of `length` bytes from `begin` on lie before `end`.
__device__ inline std::uint64_t clip(std::uint64_t begin, std::uint64_t length, std::uint64_t end) {
  if (begin >= end) return 0;
  return end - begin < length ? end - begin : length;
}

}  // namespace librun::cuda
