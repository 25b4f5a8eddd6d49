// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/host/bodies.hpp"
#include "kernels/host/slices.hpp"

namespace librun::host {
namespace {

/// What is reduced before it is copied to where the peers read: fits the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{8} << 10;

struct Chunk {
  std::size_t offset;
  std::size_t bytes;
};

class TwoShot {
 public:
  explicit TwoShot(const Work& work) : work_(work), steps_(work.steps), size_(work.size_bytes()) {
    chunk_bytes_ =
        std::min<std::size_t>(chunk_bytes_for(steps_.world()), steps_.control().layout.chunk_bytes);
    n_chunks_ = (size_ + chunk_bytes_ - 1) / chunk_bytes_;
  }

  // Step t copies chunk t in, reduces chunk t-1 and, after the wait, gathers chunk t-1:
  //
  //   step        0        1          2          ...   K
  //   copy in     c0       c1         c2
  //   reduce               c0         c1               cK-1
  //   publish, wait
  //   gather               c0         c1               cK-1
  //
  // The staging of c(t-1) has the other parity, is read before t is published and written again in
  // step t+1. The result of c(t-1) has the parity of t, is read after t and written in step t+2.
  void run() {
    for (std::size_t t = 0; t <= n_chunks_; ++t) {
      steps_.begin();
      if (t < n_chunks_) copy_in(chunk(t));
      if (t > 0) reduce_own_slice(chunk(t - 1));
      work_.stores.fence();
      steps_.publish();
      if (!steps_.wait_all()) return;
      if (t > 0) gather(chunk(t - 1));
    }
  }

 private:
  Chunk chunk(std::size_t index) const {
    const std::size_t offset = index * chunk_bytes_;
    return {offset, std::min(chunk_bytes_, size_ - offset)};
  }

  void copy_in(Chunk chunk) const {
    const std::byte* from = work_.args.send + chunk.offset;
    std::byte* to = steps_.staging(steps_.rank());
    const Slice own = slice_of(steps_.rank(), steps_.world(), chunk.bytes);
    const std::size_t own_end = own.offset_bytes + own.size_bytes;
    work_.stores.copy_first(to, from, own.offset_bytes);
    work_.stores.copy_first(to + own_end, from + own_end, chunk.bytes - own_end);
  }

  void reduce_own_slice(Chunk chunk) const {
    const Slice own = slice_of(steps_.rank(), steps_.world(), chunk.bytes);
    const void* sources[LIBRUN_MAX_WORLD];
    for (int peer = 0; peer < steps_.world(); ++peer)
      sources[peer] = steps_.previous_staging(peer) + own.offset_bytes;
    std::byte* const out = work_.args.recv + chunk.offset + own.offset_bytes;
    sources[steps_.rank()] = work_.args.send + chunk.offset + own.offset_bytes;
    for (std::size_t done = 0; done < own.size_bytes; done += kBlockBytes) {
      const std::size_t bytes = std::min(kBlockBytes, own.size_bytes - done);
      work_.reduce(out + done, sources, steps_.world(), bytes / work_.element_bytes);
      work_.stores.copy(steps_.result(steps_.rank()) + done, out + done, bytes);
      for (int peer = 0; peer < steps_.world(); ++peer)
        sources[peer] = static_cast<const std::byte*>(sources[peer]) + bytes;
    }
  }

  void gather(Chunk chunk) const {
    for (int peer = 0; peer < steps_.world(); ++peer) {
      if (peer == steps_.rank()) continue;
      const Slice slice = slice_of(peer, steps_.world(), chunk.bytes);
      std::memcpy(work_.args.recv + chunk.offset + slice.offset_bytes, steps_.result(peer),
                  slice.size_bytes);
    }
  }

  const Work& work_;
  Steps& steps_;
  std::size_t size_;
  std::size_t chunk_bytes_;
  std::size_t n_chunks_;
};

}  // namespace

void run_two_shot(const Work& work) { TwoShot(work).run(); }

}  // namespace librun::host
