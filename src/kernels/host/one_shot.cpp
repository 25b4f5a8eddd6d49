// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/host/bodies.hpp"

namespace librun::host {
namespace {

/// Less than a staging area has with two ranks, so that large inputs take turns in it too.
constexpr std::size_t kStepBytes = std::size_t{256} << 10;
/// Of a step; each is published by itself, so that the peers need not wait for all of it. Half of
/// the size costs 20 % more: for each, the line that tells of it goes to and fro.
constexpr std::size_t kPieceBytes = std::size_t{32} << 10;
/// Copies and reductions alternate at this size: the stores of one wait for their lines while the
/// loads of the other go on.
constexpr std::size_t kBlockBytes = std::size_t{2} << 10;

/// Steps of less than the whole staging area take turns in it, so that most lines have left the
/// peers' second-level caches when they are written again: a store to a line that a peer still
/// holds takes twice as long. Small ones stay in the first level of their writer.
std::size_t place_of_step(const Steps& steps, std::size_t size_bytes) {
  constexpr std::size_t kMinBytes = std::size_t{8} << 10;
  if (size_bytes < kMinBytes) return 0;
  const std::size_t room = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::size_t places = std::max<std::size_t>(steps.control().layout.chunk_bytes / room, 1);
  return steps.number() / 2 % places * room;
}

class OneShotStep {
 public:
  OneShotStep(const Work& work, std::size_t offset, std::size_t size_bytes, std::size_t piece_bytes)
      : work_(work),
        steps_(work.steps),
        send_(work.args.send + offset),
        recv_(work.args.recv + offset),
        size_bytes_(size_bytes),
        piece_bytes_(piece_bytes) {
    steps_.begin();
    for (int peer = 0; peer < steps_.world(); ++peer)
      staging_[peer] = steps_.staging(peer) + place_of_step(steps_, size_bytes);
  }

  // Copies one piece ahead of what it reduces:
  //
  //   copy      p0 | p1 | p2 | ...
  //   publish      0    1    2
  //   wait, reduce | p0 | p1 | p2 ...
  void run() {
    work_.stores.copy_first(staging_[steps_.rank()], send_, piece(0));
    publish(0);
    const std::size_t pieces = (size_bytes_ + piece_bytes_ - 1) / piece_bytes_;
    for (std::size_t index = 0; index < pieces; ++index) {
      // The first line may carry a refusal, which must not be missed on any peer.
      if (index == 0 ? !steps_.wait_all() : !wait_for_peers(index)) return;
      const std::size_t begin = index * piece_bytes_;
      for (std::size_t done = 0; done < piece(begin); done += kBlockBytes) {
        copy_ahead(begin + piece_bytes_ + done);
        reduce(begin + done, std::min(kBlockBytes, piece(begin) - done));
      }
      if (index + 1 < pieces) publish(index + 1);
    }
  }

 private:
  std::size_t piece(std::size_t begin) const { return std::min(piece_bytes_, size_bytes_ - begin); }

  void publish(std::size_t index) {
    work_.stores.fence();
    steps_.publish(index);
  }

  bool wait_for_peers(std::size_t index) {
    for (int peer = 0; peer < steps_.world(); ++peer)
      if (peer != steps_.rank() && !steps_.wait(peer, index)) return false;
    return true;
  }

  void copy_ahead(std::size_t at) {
    if (at >= size_bytes_) return;
    work_.stores.copy(staging_[steps_.rank()] + at, send_ + at,
                      std::min(kBlockBytes, size_bytes_ - at));
  }

  void reduce(std::size_t at, std::size_t block_bytes) {
    const void* sources[LIBRUN_MAX_WORLD];
    for (int peer = 0; peer < steps_.world(); ++peer) sources[peer] = staging_[peer] + at;
    sources[steps_.rank()] = send_ + at;
    work_.reduce(recv_ + at, sources, steps_.world(), block_bytes / work_.element_bytes);
  }

  const Work& work_;
  Steps& steps_;
  const std::byte* send_;
  std::byte* recv_;
  std::size_t size_bytes_;
  std::size_t piece_bytes_;
  std::byte* staging_[LIBRUN_MAX_WORLD];
};

}  // namespace

void run_one_shot(const Work& work) {
  const ControlBlock& control = work.steps.control();
  const std::size_t size_bytes = work.size_bytes();
  const std::size_t step_bytes = std::min<std::size_t>(kStepBytes, control.layout.chunk_bytes);
  // A rank that gives way does so at each wait: as few as can be. All ranks cut alike.
  const std::size_t piece_bytes = control.whole_steps ? step_bytes : kPieceBytes;
  static_assert(kStepBytes / kPieceBytes <= kLinesPerParity);
  for (std::size_t offset = 0; offset < size_bytes && !work.steps.ended(); offset += step_bytes)
    OneShotStep(work, offset, std::min(step_bytes, size_bytes - offset), piece_bytes).run();
}

}  // namespace librun::host
