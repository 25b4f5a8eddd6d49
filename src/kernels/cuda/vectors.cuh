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

template <class T>
__device__ inline Vector<T> to_vector(uint4 words) {
  Vector<T> value;
  value.words[0] = words.x;
  value.words[1] = words.y;
  value.words[2] = words.z;
  value.words[3] = words.w;
  return value;
}
template <class T>
__device__ inline uint4 to_words(const Vector<T>& value) {
  return make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]);
}

__device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0;
}

/// Where a vector is not whole or not aligned; out of line, since that is the end or seldom.
template <class T>
static __device__ __noinline__ uint4 load_elements(const T* from, std::uint64_t count) {
  Vector<T> value;
  for (std::uint32_t& word : value.words) word = 0;
#pragma unroll
  for (int i = 0; i < Vector<T>::kElements; ++i)
    if (i < count) value.elements[i] = from[i];
  return to_words(value);
}
template <class T>
static __device__ __noinline__ void store_elements(T* to, std::uint64_t count, uint4 words) {
  const Vector<T> value = to_vector<T>(words);
#pragma unroll
  for (int i = 0; i < Vector<T>::kElements; ++i)
    if (i < count) to[i] = value.elements[i];
}

/// Sixteen bytes of the user's memory, aligned.
template <class T>
__device__ inline Vector<T> load_vector(const std::byte* from) {
  return to_vector<T>(__ldcg(reinterpret_cast<const uint4*>(from)));
}
template <class T>
__device__ inline void store_vector(std::byte* to, const Vector<T>& value) {
  *reinterpret_cast<uint4*>(to) = to_words(value);
}
/// Aligned to T only, and ending anywhere. @param left bytes to the end; beyond reads as zero
template <class T>
__device__ inline Vector<T> load_part(const std::byte* from, std::uint64_t left) {
  return to_vector<T>(load_elements(reinterpret_cast<const T*>(from), left / sizeof(T)));
}
template <class T>
__device__ inline void store_part(std::byte* to, std::uint64_t left, const Vector<T>& value) {
  store_elements(reinterpret_cast<T*>(to), left / sizeof(T), to_words(value));
}

/// Memory of the user.
template <class T>
struct UserRange {
  std::byte* base;
  std::uint64_t size_bytes;
  bool aligned;

  __device__ UserRange(const std::byte* at, std::uint64_t bytes)
      : base(const_cast<std::byte*>(at)), size_bytes(bytes), aligned(is_aligned(at)) {}

  /// @param at a multiple of 16
  __device__ Vector<T> load(std::uint64_t at) const {
    return is_whole(at) ? load_vector<T>(base + at) : load_part<T>(base + at, left_at(at));
  }
  __device__ void store(std::uint64_t at, const Vector<T>& value) const {
    if (is_whole(at))
      store_vector<T>(base + at, value);
    else
      store_part<T>(base + at, left_at(at), value);
  }

 private:
  __device__ bool is_whole(std::uint64_t at) const {
    return aligned && at + kVectorBytes <= size_bytes;
  }
  __device__ std::uint64_t left_at(std::uint64_t at) const {
    return at < size_bytes ? size_bytes - at : 0;
  }
};

/// Memory of an arena: always whole vectors. Past the first-level cache, which does not see what
/// peers write.
template <class T>
__device__ inline Vector<T> load_arena(const std::byte* at) {
  return to_vector<T>(__ldcg(reinterpret_cast<const uint4*>(at)));
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
