// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/host/bodies.hpp"

namespace librun::host {
namespace {

/// Small enough to stay in the second-level cache with the peers' copies.
constexpr std::size_t kOneShotChunkBytes = std::size_t{64} << 10;

}  // namespace

void run_one_shot(const Work& work) {
  Steps& steps = work.steps;
  const std::size_t size_bytes = work.size_bytes();
  const std::size_t chunk_bytes =
      std::min<std::size_t>(kOneShotChunkBytes, steps.control().layout.chunk_bytes);
  const void* sources[LIBRUN_MAX_WORLD];
  for (std::size_t offset = 0; offset < size_bytes; offset += chunk_bytes) {
    const std::size_t bytes = std::min(chunk_bytes, size_bytes - offset);
    steps.begin();
    std::memcpy(steps.staging(steps.rank()), work.args.send + offset, bytes);
    steps.publish();
    if (!steps.wait_all()) return;
    for (int peer = 0; peer < steps.world(); ++peer) sources[peer] = steps.staging(peer);
    sources[steps.rank()] = work.args.send + offset;
    work.reduce(work.args.recv + offset, sources, steps.world(), bytes / work.element_bytes);
  }
}

}  // namespace librun::host
