// SPDX-License-Identifier: Apache-2.0
#include "runtime/select.hpp"

#include "kernels/arena.hpp"

namespace librun {
namespace {

// Measured on two cores with 2 and 8 ranks: docs/measurements/host.md.
/// One line: with more, each would be reduced by itself, which costs more than a flag of its own.
constexpr std::size_t kAutoLlMaxBytes = kLineDataBytes;
constexpr std::size_t kZeroCopyMinBytes = 32 << 10;

/// From here on it pays to reduce each element once rather than on every rank.
constexpr std::size_t one_shot_max_bytes(int world) {
  return world <= 2 ? std::size_t{1} << 62 : std::size_t{16} << 10;
}

// Measured on H200 with 2, 4 and 8 ranks: docs/measurements/h200-kernels.md.
/// Two ranks send the same bytes one way or the other.
constexpr std::size_t cuda_one_shot_max_bytes(int world) {
  if (world <= 2) return std::size_t{1} << 62;
  return world <= 4 ? std::size_t{256} << 10 : std::size_t{64} << 10;
}
librun_algo_t select_cuda(const Selection& selection, std::size_t size_bytes) {
  constexpr std::size_t kZeroCopyMin = std::size_t{16} << 20;
  if (selection.world > 4 && size_bytes <= std::size_t{32} << 10) return LIBRUN_ALGO_LL;
  if (selection.can_zero_copy && size_bytes >= kZeroCopyMin) return LIBRUN_ALGO_ZERO_COPY;
  return size_bytes <= cuda_one_shot_max_bytes(selection.world) ? LIBRUN_ALGO_ONE_SHOT
                                                                : LIBRUN_ALGO_TWO_SHOT;
}

}  // namespace

librun_algo_t select_algo(const Selection& selection, std::size_t size_bytes) {
  if (selection.forced != LIBRUN_ALGO_AUTO) return selection.forced;
  if (selection.device == LIBRUN_DEVICE_CUDA) return select_cuda(selection, size_bytes);
  if (size_bytes <= kAutoLlMaxBytes) return LIBRUN_ALGO_LL;
  if (selection.can_zero_copy && size_bytes >= kZeroCopyMinBytes) return LIBRUN_ALGO_ZERO_COPY;
  if (size_bytes <= one_shot_max_bytes(selection.world)) return LIBRUN_ALGO_ONE_SHOT;
  return LIBRUN_ALGO_TWO_SHOT;
}

}  // namespace librun
