// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/host/bodies.hpp"

namespace librun::host {
namespace {

// A line holds 56 bytes of data and the epoch that says they are there:
//
//   line i   | data[i*56, i*56+56)                        | epoch |
//
// 56 is a multiple of every element size, so no element is split.
void run_ll_piece(const Work& work, std::size_t offset, std::size_t piece_bytes) {
  Steps& steps = work.steps;
  const std::size_t lines = (piece_bytes + kLineDataBytes - 1) / kLineDataBytes;
  const auto bytes_of = [&](std::size_t line) {
    return std::min(kLineDataBytes, piece_bytes - line * kLineDataBytes);
  };
  const std::byte* send = work.args.send + offset;
  std::byte* recv = work.args.recv + offset;

  steps.begin();
  for (std::size_t i = 0; i < lines; ++i) {
    std::memcpy(steps.line(steps.rank(), i).data, send + i * kLineDataBytes, bytes_of(i));
    steps.publish(i);
  }
  // The first line may carry a refusal, which must not be missed on any peer.
  if (!steps.wait_all()) return;
  const void* sources[LIBRUN_MAX_WORLD];
  for (std::size_t i = 0; i < lines; ++i) {
    for (int peer = 0; peer < steps.world(); ++peer) {
      if (i > 0 && peer != steps.rank() && !steps.wait(peer, i)) return;
      sources[peer] = steps.line(peer, i).data;
    }
    work.reduce(recv + i * kLineDataBytes, sources, steps.world(),
                bytes_of(i) / work.element_bytes);
  }
}

}  // namespace

void run_ll(const Work& work) {
  const std::size_t size_bytes = work.size_bytes();
  for (std::size_t offset = 0; offset < size_bytes && !work.steps.ended(); offset += kLlMaxBytes)
    run_ll_piece(work, offset, std::min(kLlMaxBytes, size_bytes - offset));
}

}  // namespace librun::host
