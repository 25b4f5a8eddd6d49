// SPDX-License-Identifier: Apache-2.0
// The reductions, compiled once for each instruction set. Everything here has internal linkage, and
// calls nothing but builtins: an inline function shared with other files could be the one copy that
// the linker keeps, with instructions that the machine lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#else
#include "kernels/dtype.hpp"
#endif

#include "kernels/host/reduce.hpp"

namespace librun::host {
namespace {

/// Of a register: g++ splits vectors that are longer through memory, element by element.
#if defined(__AVX512F__)
constexpr std::size_t kWidth = 64;
#elif defined(__AVX2__)
constexpr std::size_t kWidth = 32;
#else
constexpr std::size_t kWidth = 16;
#endif

template <class T, std::size_t Lanes>
struct VecOf {
  typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
template <class T, std::size_t Lanes>
using Vec = typename VecOf<T, Lanes>::type;

/// Elements that are accumulated in their own type; U is the unsigned (or same) type to add in.
template <class T, class U>
struct Plain {
  static constexpr std::size_t kLanes = kWidth / sizeof(T);
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr std::size_t kUnroll = 4;
  using Acc = Vec<T, kLanes>;
  using Part = Acc;
  using Wrap = Vec<U, kLanes>;  // signed overflow is undefined, unsigned wraps
  static Acc widen(const std::byte* from) {
    Acc value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static void narrow(std::byte* to, Acc value) { std::memcpy(to, &value, sizeof(value)); }
  template <class Op>
  static Acc apply(Acc a, Acc b) {
    return Op::apply(a, b);
  }
};

/// Two elements a word, taken apart and put together by shifts and masks: to widen and to narrow
/// the vectors would take more than half of the time.
struct Bfloat16 {
  static constexpr std::size_t kLanes = kWidth / 2;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kUnroll = 2;
  using Part = Vec<float, kWidth / 4>;
  using Bits = Vec<std::uint32_t, kWidth / 4>;
  using Wrap = Part;
  struct Acc {
    Part low;   ///< of each word
    Part high;  ///< of each word
  };
  static Acc widen(const std::byte* from) {
    Bits words;
    std::memcpy(&words, from, sizeof(words));
    return {reinterpret_cast<Part>(words << 16), reinterpret_cast<Part>(words & 0xffff0000u)};
  }
  static void narrow(std::byte* to, Acc value) {
    const Bits words = rounded(value.low) >> 16 | (rounded(value.high) & 0xffff0000u);
    std::memcpy(to, &words, sizeof(words));
  }
  template <class Op>
  static Acc apply(Acc a, Acc b) {
    return {Op::apply(a.low, b.low), Op::apply(a.high, b.high)};
  }

 private:
  /// In the upper half, whatever the lower one is then; a NaN stays one, and is quiet.
  static Bits rounded(Part value) {
    const auto bits = reinterpret_cast<Bits>(value);
    return value != value ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  }
};

struct Float16 {
  static constexpr std::size_t kLanes = kWidth / 4;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kUnroll = 4;
  using Acc = Vec<float, kLanes>;
  using Part = Acc;
  using Wrap = Acc;
  template <class Op>
  static Acc apply(Acc a, Acc b) {
    return Op::apply(a, b);
  }
#if defined(__AVX512F__)
  // The zero-masked forms: the plain ones start from an "undefined" register, which g++ warns of.
  static Acc widen(const std::byte* from) {
    __m256i half;
    std::memcpy(&half, from, sizeof(half));
    return reinterpret_cast<Acc>(_mm512_maskz_cvtph_ps(0xffff, half));
  }
  static void narrow(std::byte* to, Acc value) {
    const __m256i half =
        _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(value), _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(to, &half, sizeof(half));
  }
#elif defined(__F16C__)
  static Acc widen(const std::byte* from) {
    __m128i half;
    std::memcpy(&half, from, sizeof(half));
    return reinterpret_cast<Acc>(_mm256_cvtph_ps(half));
  }
  static void narrow(std::byte* to, Acc value) {
    const __m128i half =
        _mm256_cvtps_ph(reinterpret_cast<__m256>(value), _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(to, &half, sizeof(half));
  }
#else
  static Acc widen(const std::byte* from) {
    Acc value;
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::uint16_t half;
      std::memcpy(&half, from + i * 2, 2);
      value[i] = half_to_float(half);
    }
    return value;
  }
  static void narrow(std::byte* to, Acc value) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint16_t half = float_to_half(value[i]);
      std::memcpy(to + i * 2, &half, 2);
    }
  }
#endif
};

template <class E>
struct Sum {
  static typename E::Part apply(typename E::Part a, typename E::Part b) {
    using W = typename E::Wrap;
    return reinterpret_cast<typename E::Part>(reinterpret_cast<W>(a) + reinterpret_cast<W>(b));
  }
};
template <class E>
struct Prod {
  static typename E::Part apply(typename E::Part a, typename E::Part b) {
    using W = typename E::Wrap;
    return reinterpret_cast<typename E::Part>(reinterpret_cast<W>(a) * reinterpret_cast<W>(b));
  }
};
// A NaN on either side wins: the comparison is false for it, and an accumulated NaN stays. Equal
// values, -0 and +0 among them, keep what was there first.
template <class E>
struct Min {
  static typename E::Part apply(typename E::Part a, typename E::Part b) {
    const auto take = ~(a <= b) & (a == a);
    return take ? b : a;
  }
};
template <class E>
struct Max {
  static typename E::Part apply(typename E::Part a, typename E::Part b) {
    const auto take = ~(a >= b) & (a == a);
    return take ? b : a;
  }
};

template <class E, class Op, std::size_t Unroll>
inline void reduce_vectors(std::byte* dst, const std::byte* const* sources, int n_sources,
                           std::size_t offset) {
  constexpr std::size_t kStride = E::kLanes * E::kBytes;
  typename E::Acc acc[Unroll];
#pragma GCC unroll 4
  for (std::size_t u = 0; u < Unroll; ++u) acc[u] = E::widen(sources[0] + offset + u * kStride);
  for (int r = 1; r < n_sources; ++r) {
    const std::byte* source = sources[r] + offset;
#pragma GCC unroll 4
    for (std::size_t u = 0; u < Unroll; ++u)
      acc[u] = E::template apply<Op>(acc[u], E::widen(source + u * kStride));
  }
#pragma GCC unroll 4
  for (std::size_t u = 0; u < Unroll; ++u) E::narrow(dst + offset + u * kStride, acc[u]);
}

#if defined(__AVX512BW__)
/// One masked load: bytes beyond the tail are not touched.
inline void load_tail(std::byte* padded, const std::byte* from, std::size_t tail_bytes) {
  const __mmask64 mask = (std::uint64_t{1} << tail_bytes) - 1;
  _mm512_store_si512(padded, _mm512_maskz_loadu_epi8(mask, from));
}
#else
inline void load_tail(std::byte* padded, const std::byte* from, std::size_t tail_bytes) {
  std::memcpy(padded, from, tail_bytes);
}
#endif

/// The last elements go through full vectors too, padded with zero, so that every element sees the
/// same instructions wherever it stands.
template <class E, class Op>
inline void reduce_tail(std::byte* dst, const std::byte* const* sources, int n_sources,
                        std::size_t offset, std::size_t tail_bytes) {
  constexpr std::size_t kStride = E::kLanes * E::kBytes;
  alignas(64) std::byte padded[64] = {};
  static_assert(kStride <= sizeof(padded));
  load_tail(padded, sources[0] + offset, tail_bytes);
  typename E::Acc acc = E::widen(padded);
  for (int r = 1; r < n_sources; ++r) {
    load_tail(padded, sources[r] + offset, tail_bytes);
    acc = E::template apply<Op>(acc, E::widen(padded));
  }
  E::narrow(padded, acc);
  std::memcpy(dst + offset, padded, tail_bytes);
}

template <class E, class Op>
void reduce(void* dst_void, const void* const* sources_void, int n_sources, std::size_t count) {
  auto* dst = static_cast<std::byte*>(dst_void);
  const auto* sources = reinterpret_cast<const std::byte* const*>(sources_void);
  constexpr std::size_t kStride = E::kLanes * E::kBytes;
  const std::size_t size_bytes = count * E::kBytes;
  std::size_t offset = 0;
  constexpr std::size_t kPiece = E::kUnroll * kStride;
  for (; offset + kPiece <= size_bytes; offset += kPiece)
    reduce_vectors<E, Op, E::kUnroll>(dst, sources, n_sources, offset);
  for (; offset + kStride <= size_bytes; offset += kStride)
    reduce_vectors<E, Op, 1>(dst, sources, n_sources, offset);
  if (offset < size_bytes) reduce_tail<E, Op>(dst, sources, n_sources, offset, size_bytes - offset);
}

#define LIBRUN_ROW(E) \
  { reduce<E, Sum<E>>, reduce<E, Prod<E>>, reduce<E, Min<E>>, reduce<E, Max<E>> }
template <class T, class U = T>
using Elem = Plain<T, U>;
using Int8 = Elem<std::int8_t, std::uint8_t>;
using Int32 = Elem<std::int32_t, std::uint32_t>;
using Int64 = Elem<std::int64_t, std::uint64_t>;

// In the order of librun_dtype_t and librun_op_t.
constexpr ReduceTable kTable = {{
    LIBRUN_ROW(Float16),
    LIBRUN_ROW(Bfloat16),
    LIBRUN_ROW(Elem<float>),
    LIBRUN_ROW(Elem<double>),
    LIBRUN_ROW(Int8),
    LIBRUN_ROW(Elem<std::uint8_t>),
    LIBRUN_ROW(Int32),
    LIBRUN_ROW(Elem<std::uint32_t>),
    LIBRUN_ROW(Int64),
    LIBRUN_ROW(Elem<std::uint64_t>),
}};
#undef LIBRUN_ROW

}  // namespace
}  // namespace librun::host
