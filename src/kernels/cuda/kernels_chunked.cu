// SPDX-License-Identifier: Apache-2.0
// one_shot, two_shot and zero_copy: whole vectors into the peers' arenas, a flag for each block.
#include "kernels/cuda/block_steps.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/start.cuh"
#include "kernels/cuda/vectors.cuh"

namespace librun::cuda {
namespace {

constexpr std::uint32_t kThreads = 512;

/// Rank `rank`'s part of `size_bytes`: whole vectors, the last ones may be short or empty.
struct Slice {
  std::uint64_t begin;
  std::uint64_t size_bytes;
};
__device__ Slice slice_of(int rank, int world, std::uint64_t size_bytes) {
  const std::uint64_t part =
      round_up((size_bytes + world - 1) / static_cast<unsigned>(world), kVectorBytes);
  const std::uint64_t begin = part * static_cast<unsigned>(rank);
  return {begin < size_bytes ? begin : size_bytes, clip(begin, part, size_bytes)};
}

template <class V>
class Chunked {
  using T = typename V::Type;

 public:
  __device__ Chunked(const KernelArgs& args, BlockSteps& steps)
      : args_(args),
        steps_(steps),
        size_(args.count * sizeof(T)),
        send_(args.send, size_),
        recv_(args.recv, size_) {}

  // Step t pushes piece t of this block to every peer; each reduces all of it.
  __device__ void one_shot() {
    const std::uint64_t piece = piece_bytes(steps_.layout().slice_bytes, kVectorBytes);
    for (std::uint64_t t = 0; t * gridDim.x * piece < size_; ++t) {
      const std::uint64_t begin = (t * gridDim.x + blockIdx.x) * piece;
      const std::uint64_t bytes = clip(begin, piece, size_);
      steps_.begin();
      for (std::uint64_t at = first(); at < bytes; at += kStride) {
        const auto own = send_.load(begin + at);
#pragma unroll
        for (int k = 1; k < world(); ++k) {
          const int peer = (rank() + k) % world();
          store_arena(steps_.staging(peer, rank()) + at, own);
        }
      }
      if (!steps_.exchange_flags()) return;
      for (std::uint64_t at = first(); at < bytes; at += kStride)
        recv_.store(begin + at, reduce([&](int source) {
                      return source == rank() ? send_.load(begin + at)
                                              : load_arena<T>(steps_.staging(rank(), source) + at);
                    }));
    }
    steps_.leave();
  }

  // Step t scatters piece t, reduces the own slice of piece t-1 and pushes it to every peer, and
  // after the flags gathers the slices of piece t-1:
  //
  //   step        0        1          2          ...   K
  //   scatter     p0       p1         p2
  //   reduce, push         p0         p1               pK-1
  //   flags
  //   gather               p0         p1               pK-1
  //
  // The staging of p(t-1) has the other parity and is read before the flags of t; it is written
  // again in t+1. The result of p(t-1) has the parity of t, is read after the flags of t, and is
  // written again in t+2.
  __device__ void two_shot() {
    const std::uint64_t grain = kVectorBytes * static_cast<unsigned>(world());
    const std::uint64_t piece =
        piece_bytes(steps_.layout().slice_bytes * static_cast<unsigned>(world()), grain);
    const std::uint64_t pieces = (size_ + gridDim.x * piece - 1) / (gridDim.x * piece);
    for (std::uint64_t t = 0; t <= pieces; ++t) {
      steps_.begin();
      if (t < pieces) scatter(begin_of(t, piece), piece);
      if (t > 0)
        reduce_own(begin_of(t - 1, piece), piece, [&](int source, std::uint64_t, std::uint64_t at) {
          return load_arena<T>(steps_.previous_staging(rank(), source) + at);
        });
      if (!steps_.exchange_flags()) return;
      if (t > 0) gather(begin_of(t - 1, piece), piece);
    }
    steps_.leave();
  }

  // The announcement told where every rank's buffers lie, so all take one branch.
  __device__ void zero_copy() {
    bool all_send = true;
    bool all_recv = true;
    for (int peer = 0; peer < world(); ++peer) {
      const Announcement& call = args_.state->announced[peer];
      const std::byte* from = resolve(call.send_slot, call.send_number, call.send_offset, peer);
      const std::byte* to = resolve(call.recv_slot, call.recv_number, call.recv_offset, peer);
      all_send = all_send && from;
      all_recv = all_recv && to;
    }
    if (all_send && all_recv) return push_results();
    if (all_send) return pull_inputs();
    two_shot();
  }

 private:
  static constexpr std::uint64_t kStride = kThreads * kVectorBytes;

  __device__ int world() const { return V::kWorld > 0 ? V::kWorld : steps_.world(); }
  __device__ int rank() const { return steps_.rank(); }
  __device__ static std::uint64_t first() { return threadIdx.x * kVectorBytes; }

  /// What each block takes in a step: its fair share, or as much as it has room for.
  __device__ std::uint64_t piece_bytes(std::uint64_t room, std::uint64_t grain) const {
    const std::uint64_t fair = round_up((size_ + gridDim.x - 1) / gridDim.x, grain);
    const std::uint64_t most = room / grain * grain;
    return fair < most ? fair : most;
  }
  __device__ std::uint64_t begin_of(std::uint64_t t, std::uint64_t piece) const {
    return (t * gridDim.x + blockIdx.x) * piece;
  }

  template <class Load>
  __device__ Vector<T> reduce(Load&& load) const {
    return reduce_ranks<T, V::kSum, V::kWorld, 4>(world(), args_.op, load);
  }

  __device__ void scatter(std::uint64_t begin, std::uint64_t piece) {
    const std::uint64_t bytes = clip(begin, piece, size_);
#pragma unroll 1
    for (int k = 1; k < world(); ++k) {
      const int peer = (rank() + k) % world();
      const Slice slice = slice_of(peer, world(), bytes);
      std::byte* to = steps_.staging(peer, rank());
      for (std::uint64_t at = first(); at < slice.size_bytes; at += kStride)
        store_arena(to + at, send_.load(begin + slice.begin + at));
    }
  }

  /// @param load the vector of a source, at (offset in the whole, offset in the slice)
  template <class Load>
  __device__ void reduce_own(std::uint64_t begin, std::uint64_t piece, Load&& load) {
    const Slice own = slice_of(rank(), world(), clip(begin, piece, size_));
    for (std::uint64_t at = first(); at < own.size_bytes; at += kStride) {
      const std::uint64_t in_whole = begin + own.begin + at;
      const auto sum = reduce([&](int source) {
        return source == rank() ? send_.load(in_whole) : load(source, in_whole, at);
      });
      recv_.store(in_whole, sum);
#pragma unroll
      for (int k = 1; k < world(); ++k) {
        const int peer = (rank() + k) % world();
        store_arena(steps_.result(peer, rank()) + at, sum);
      }
    }
  }

  __device__ void gather(std::uint64_t begin, std::uint64_t piece) {
    const std::uint64_t bytes = clip(begin, piece, size_);
#pragma unroll 1
    for (int k = 1; k < world(); ++k) {
      const int peer = (rank() + k) % world();
      const Slice slice = slice_of(peer, world(), bytes);
      const std::byte* from = steps_.result(rank(), peer);
      for (std::uint64_t at = first(); at < slice.size_bytes; at += kStride)
        recv_.store(begin + slice.begin + at, load_arena<T>(from + at));
    }
  }

  /// Where a rank's buffer is mapped here; null when its slot is staged, too short, or not the
  /// buffer's any more.
  __device__ const std::byte* resolve(int slot, unsigned number, std::uint64_t offset,
                                      int peer) const {
    if (slot < 0 || slot >= LIBRUN_MAX_BUFFERS) return nullptr;
    const Slot& row = steps_.control().slots[slot];
    if (!row.live || row.staged || row.number != number || offset > row.size_bytes ||
        size_ > row.size_bytes - offset)
      return nullptr;
    return row.base[peer] + offset;
  }
  __device__ UserRange<T> input_of(int peer) const {
    const Announcement& call = args_.state->announced[peer];
    return {resolve(call.send_slot, call.send_number, call.send_offset, peer), size_};
  }
  __device__ UserRange<T> output_of(int peer) const {
    const Announcement& call = args_.state->announced[peer];
    return {resolve(call.recv_slot, call.recv_number, call.recv_offset, peer), size_};
  }

  // Each rank reduces its slice of the whole and writes it to every output. In place is safe: only
  // the owner of a slice touches that slice, of any buffer, before the flags.
  __device__ void push_results() {
    const Slice own = slice_of(rank(), world(), size_);
    for (std::uint64_t at = blockIdx.x * kStride + first(); at < own.size_bytes;
         at += gridDim.x * kStride) {
      const std::uint64_t in_whole = own.begin + at;
      const auto sum = reduce([&](int source) {
        return source == rank() ? send_.load(in_whole) : input_of(source).load(in_whole);
      });
      recv_.store(in_whole, sum);
      for (int k = 1; k < world(); ++k) output_of((rank() + k) % world()).store(in_whole, sum);
    }
    steps_.begin();
    if (steps_.exchange_flags()) steps_.leave();
  }

  // Reduces slices of the peers' inputs and pushes them through the arena, a step a piece. After
  // the flags of a piece nobody reads its inputs any more, so the gather may overwrite them.
  __device__ void pull_inputs() {
    const std::uint64_t grain = kVectorBytes * static_cast<unsigned>(world());
    const std::uint64_t piece =
        piece_bytes(steps_.layout().slice_bytes * static_cast<unsigned>(world()), grain);
    for (std::uint64_t t = 0; t * gridDim.x * piece < size_; ++t) {
      steps_.begin();
      reduce_own(begin_of(t, piece), piece, [&](int source, std::uint64_t in_whole, std::uint64_t) {
        return input_of(source).load(in_whole);
      });
      if (!steps_.exchange_flags()) return;
      gather(begin_of(t, piece), piece);
    }
    steps_.leave();
  }

  const KernelArgs& args_;
  BlockSteps& steps_;
  std::uint64_t size_;
  UserRange<T> send_;
  UserRange<T> recv_;
};

template <class V>
__global__ void __launch_bounds__(kThreads) chunked(const KernelArgs args) {
  BlockSteps steps(args.state);
  if (!steps.enter(args.announced)) return;
  Chunked<V> body(args, steps);
  switch (args.body) {
    case Body::one_shot:
      return body.one_shot();
    case Body::two_shot:
      return body.two_shot();
    default:
      return body.zero_copy();
  }
}

}  // namespace

cudaError_t launch_chunked(const KernelArgs& args, const Shape& shape, cudaStream_t stream) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(chunked<decltype(variant)>, shape.n_blocks, kThreads, stream, args);
  });
}

}  // namespace librun::cuda
