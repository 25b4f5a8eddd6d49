// SPDX-License-Identifier: Apache-2.0
// ll: one-shot push, the epoch inside the data. No flag, no fence, no barrier between ranks.
#include "kernels/cuda/block_steps.cuh"
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/start.cuh"

namespace librun::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

// A line of 16 bytes, written and read whole:
//
//   types up to 4 bytes   | 12 bytes of data          | epoch |
//   types of 8 bytes      | 8 bytes of data   |   -   | epoch |
template <class T>
struct LineOf {
  static constexpr int kWords = sizeof(T) == 8 ? 2 : 3;
  using Data = Packed<T, kWords>;
  static constexpr std::uint64_t kElements = Data::kElements;

  __device__ static uint4 with_epoch(const Data& data, std::uint32_t epoch) {
    return make_uint4(data.words[0], data.words[1], kWords == 3 ? data.words[kWords - 1] : 0,
                      epoch);
  }
  __device__ static Data data_of(uint4 line) {
    Data data;
    data.words[0] = line.x;
    data.words[1] = line.y;
    if constexpr (kWords == 3) data.words[2] = line.z;
    return data;
  }
  __device__ static Data load(const T* from, std::uint64_t begin, std::uint64_t count) {
    Data data;
#pragma unroll
    for (std::uint32_t& word : data.words) word = 0;
#pragma unroll
    for (int i = 0; i < Data::kElements; ++i)
      if (begin + i < count) data.elements[i] = from[begin + i];
    return data;
  }
  __device__ static void store(T* to, std::uint64_t begin, std::uint64_t count, const Data& data) {
#pragma unroll
    for (int i = 0; i < Data::kElements; ++i)
      if (begin + i < count) to[begin + i] = data.elements[i];
  }
};

template <class V>
__global__ void __launch_bounds__(kThreads) ll(const KernelArgs args) {
  using T = typename V::Type;
  using Line = LineOf<T>;
  BlockSteps steps(args.state);
  if (!steps.enter(args.announced)) return;
  const int world = V::kWorld > 0 ? V::kWorld : steps.world();
  const int rank = steps.rank();
  const T* send = reinterpret_cast<const T*>(args.send);
  T* recv = reinterpret_cast<T*>(args.recv);
  const std::uint64_t lines = (args.count + Line::kElements - 1) / Line::kElements;
  const std::uint64_t fair = (lines + gridDim.x - 1) / gridDim.x;
  const std::uint64_t share =
      fair < steps.layout().lines_per_block ? fair : steps.layout().lines_per_block;

  for (std::uint64_t base = 0; base < lines; base += share * gridDim.x) {
    const std::uint64_t begin = base + share * blockIdx.x;
    const std::uint64_t mine = begin < lines ? (lines - begin < share ? lines - begin : share) : 0;
    // The proof of the parities wants a line from every block in every step, be it empty.
    const std::uint64_t sent = mine > 0 ? mine : 1;
    steps.begin();
    for (std::uint32_t i = threadIdx.x; i < sent; i += kThreads) {
      const auto own = Line::load(send, (begin + i) * Line::kElements, i < mine ? args.count : 0);
      const uint4 line = Line::with_epoch(own, steps.epoch());
#pragma unroll
      for (int k = 1; k < world; ++k) {
        const int peer = (rank + k) % world;
        store_line(steps.line(peer, rank, i), line);
      }
    }
    bool failed = false;
    for (std::uint32_t i = threadIdx.x; i < sent; i += kThreads) {
      const std::uint64_t at = (begin + i) * Line::kElements;
      const auto result =
          reduce_ranks<T, V::kSum, V::kWorld, Line::kWords>(world, args.op, [&](int source) {
            if (source == rank) return Line::load(send, at, i < mine ? args.count : 0);
            uint4 line;
            const std::byte* from = steps.line(rank, source, i);
            failed = failed || !steps.wait(source, [&] {
              line = load_line(from);
              return line.w == steps.epoch();
            });
            return Line::data_of(line);
          });
      if (failed) break;
      if (i < mine) Line::store(recv, at, args.count, result);
    }
    if (!steps.end(failed)) return;
  }
  steps.leave();
}

}  // namespace

cudaError_t launch_ll(const KernelArgs& args, const Shape& shape, cudaStream_t stream) {
  return with_variant(shape.dtype, args.op, shape.world, [&](auto variant) {
    return start(ll<decltype(variant)>, shape.n_blocks, kThreads, stream, args);
  });
}

}  // namespace librun::cuda
