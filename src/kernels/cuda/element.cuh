// SPDX-License-Identifier: Apache-2.0
// One element of each type, and 16 bytes of them: how they are reduced, with the bits of the host.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "librun/types.h"

namespace librun::cuda {

template <class T>
struct Element {
  using Acc = T;
  __device__ static Acc widen(T value) { return value; }
  __device__ static T narrow(Acc value) { return value; }
};
template <>
struct Element<__half> {
  using Acc = float;
  __device__ static Acc widen(__half value) { return __half2float(value); }
  __device__ static __half narrow(Acc value) { return __float2half_rn(value); }
};
template <>
struct Element<__nv_bfloat16> {
  using Acc = float;
  __device__ static Acc widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  __device__ static __nv_bfloat16 narrow(Acc value) { return __float2bfloat16_rn(value); }
};

/// Signed overflow is undefined, unsigned wraps.
template <class Acc>
struct Wrapping {
  using type = Acc;
};
template <>
struct Wrapping<std::int8_t> {
  using type = std::uint8_t;
};
template <>
struct Wrapping<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct Wrapping<std::int64_t> {
  using type = std::uint64_t;
};

/// A NaN on either side wins, equal values keep what was there first: see host/reduce_body.hpp.
template <class Acc>
__device__ inline Acc apply(librun_op_t op, Acc a, Acc b) {
  using W = typename Wrapping<Acc>::type;
  switch (op) {
    case LIBRUN_PROD:
      return static_cast<Acc>(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)));
    case LIBRUN_MIN:
      return !(a <= b) && a == a ? b : a;
    case LIBRUN_MAX:
      return !(a >= b) && a == a ? b : a;
    default:
      return static_cast<Acc>(static_cast<W>(static_cast<W>(a) + static_cast<W>(b)));
  }
}

/// `Words` 32-bit words seen as elements of T.
template <class T, int Words>
union Packed {
  static constexpr int kElements = Words * 4 / static_cast<int>(sizeof(T));
  std::uint32_t words[Words];
  T elements[kElements];
  __device__ Packed() {}
};

/// The reduction of n sources in the order of ranks, from `load(rank)`.
/// @tparam Sum   only the sum, without a look at `op`
/// @tparam World 0: `world` says it
template <class T, bool Sum, int World, int Words, class Load>
__device__ inline Packed<T, Words> reduce_ranks(int world, librun_op_t op, Load&& load) {
  using E = Element<T>;
  using P = Packed<T, Words>;
  typename E::Acc acc[P::kElements];
  const librun_op_t what = Sum ? LIBRUN_SUM : op;
  if constexpr (World > 0) {
    P sources[World];
#pragma unroll
    for (int rank = 0; rank < World; ++rank) sources[rank] = load(rank);
#pragma unroll
    for (int i = 0; i < P::kElements; ++i) acc[i] = E::widen(sources[0].elements[i]);
#pragma unroll
    for (int rank = 1; rank < World; ++rank)
#pragma unroll
      for (int i = 0; i < P::kElements; ++i)
        acc[i] = apply(what, acc[i], E::widen(sources[rank].elements[i]));
  } else {
    P first = load(0);
#pragma unroll
    for (int i = 0; i < P::kElements; ++i) acc[i] = E::widen(first.elements[i]);
    for (int rank = 1; rank < world; ++rank) {
      P source = load(rank);
#pragma unroll
      for (int i = 0; i < P::kElements; ++i)
        acc[i] = apply(what, acc[i], E::widen(source.elements[i]));
    }
  }
  P result;
#pragma unroll
  for (int i = 0; i < P::kElements; ++i) result.elements[i] = E::narrow(acc[i]);
  return result;
}

}  // namespace librun::cuda
