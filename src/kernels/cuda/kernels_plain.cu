// SPDX-License-Identifier: Apache-2.0
// The kernels beside the algorithms: announcements, the halves of stepped, copies, the proof.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/line_places.cuh"
#include "kernels/cuda/start.cuh"
#include "kernels/cuda/vectors.cuh"

namespace librun::cuda {
namespace {

constexpr std::uint32_t kThreads = kPlainThreads;

__device__ bool same(const Announcement& a, const Announcement& b) {
  return a.count == b.count && a.dtype == b.dtype && a.op == b.op && a.algo == b.algo;
}

/// A refusal names the lowest rank, and counts more than a mismatch. @return the outcome
__device__ Outcome judge(const Announcement* calls, int world, bool compare, int& culprit) {
  for (culprit = 0; culprit < world; ++culprit)
    if (calls[culprit].reject != 0) return Outcome::rejected;
  for (culprit = 0; compare && culprit < world; ++culprit)
    if (!same(calls[culprit], calls[0])) return Outcome::mismatch;
  return Outcome::ok;
}

__device__ void tell_host(HostWords& words, const Announcement* calls, int world, Outcome outcome,
                          int culprit, std::uint32_t step) {
  // What was said before and not yet read stands.
  if (load_relaxed(&words.outcome) != 0) return;
  for (int peer = 0; peer < world; ++peer)
    *reinterpret_cast<Announcement*>(words.announced[peer]) = calls[peer];
  words.rank = static_cast<std::uint32_t>(culprit);
  words.reject = calls[culprit].reject;
  words.step = step;
  fence_system();
  words.outcome = static_cast<std::uint32_t>(outcome);
}

// Thread 4p+k sends line k of the announcement to rank p, and receives line k of rank p:
//
//   line k   | bytes 12k..12k+11 of the announcement | epoch |
//
// The fences order what either rank wrote before its announcement, the inputs among it, before what
// the other reads after it: zero_copy relies on that.
__global__ void __launch_bounds__(kThreads)
    announce(DeviceState* state, const Announcement mine, bool compare) {
  static_assert(kAnnouncementLines == 4 && kMaxWorld * kAnnouncementLines <= kThreads);
  __shared__ Announcement calls[kMaxWorld];
  const Peers<0> peers(state->peers);
  BlockSteps<0> steps(state, peers);
  if (!steps.enter_quietly()) return;
  const int peer = static_cast<int>(threadIdx.x / kAnnouncementLines);
  const std::uint32_t index = threadIdx.x % kAnnouncementLines;
  steps.begin();
  bool failed = false;
  if (peer < steps.world()) {
    auto* words = reinterpret_cast<std::uint32_t*>(&calls[peer]) + 3 * index;
    if (peer == steps.rank()) {
      const auto* own = reinterpret_cast<const std::uint32_t*>(&mine) + 3 * index;
      for (int i = 0; i < 3; ++i) words[i] = own[i];
    } else {
      const auto* own = reinterpret_cast<const std::uint32_t*>(&mine) + 3 * index;
      fence_system();
      const LinePlaces<0> places(steps, index);
      const std::uint64_t offset = places.offset(steps.epoch());
      const std::byte* const from = places.from(peers.row_of(peer)) + offset;
      store_line(places.to(peers.distance_to(peer)) + offset,
                 make_uint4(own[0], own[1], own[2], steps.epoch()));
      uint4 line;
      failed = !steps.wait([&] {
        line = load_line(from);
        return line.w == steps.epoch() ? -1 : peer;
      });
      fence_system();
      words[0] = line.x;
      words[1] = line.y;
      words[2] = line.z;
    }
  }
  if (!steps.end(failed)) return;
  if (threadIdx.x == 0) {
    int culprit = 0;
    const Outcome outcome = judge(calls, steps.world(), compare, culprit);
    state->refused = static_cast<std::uint32_t>(outcome);
    // A rank that refuses has been told when it made the call.
    if (outcome != Outcome::ok && mine.reject == 0)
      tell_host(*state->control.words, calls, steps.world(), outcome, culprit, steps.epoch());
  }
  if (threadIdx.x < static_cast<unsigned>(steps.world()))
    state->announced[threadIdx.x] = calls[threadIdx.x];
  steps.leave();
}

__device__ void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t size_bytes) {
  const std::uint64_t first = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  std::uint64_t done = 0;
  if (is_aligned(to) && is_aligned(from)) {
    for (std::uint64_t i = first; i < size_bytes / kVectorBytes; i += stride)
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    done = size_bytes / kVectorBytes * kVectorBytes;
  }
  for (std::uint64_t i = done + first; i < size_bytes; i += stride) to[i] = from[i];
}

__global__ void __launch_bounds__(kThreads) copy(const KernelArgs args, std::uint64_t size_bytes) {
  const Peers<0> peers(args.state->peers);
  BlockSteps<0> steps(args.state, peers);
  const bool admitted = steps.enter(args.announced);
  steps.count_if_caught();
  if (admitted && args.send != args.recv) copy_bytes(args.recv, args.send, size_bytes);
}

// The barriers of the host order the two halves: staging 0 is free when a publish starts, and
// complete on all ranks when a reduce starts.
__global__ void __launch_bounds__(kThreads)
    stage_publish(const KernelArgs args, std::uint64_t size_bytes) {
  const Peers<0> peers(args.state->peers);
  BlockSteps<0> steps(args.state, peers);
  const bool admitted = steps.enter(false);
  steps.count_if_caught();
  if (!admitted) return;
  copy_bytes(peers.own_arena() + peers.table().staging, args.send, size_bytes);
}

template <class V>
__global__ void __launch_bounds__(kThreads) stage_reduce(const KernelArgs args) {
  using T = typename V::Type;
  const Peers<0> peers(args.state->peers);
  BlockSteps<0> steps(args.state, peers);
  const bool admitted = steps.enter(false);
  steps.count_if_caught();
  if (!admitted) return;
  const UserRange<T> recv(args.recv, args.count * sizeof(T));
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads * kVectorBytes;
  for (std::uint64_t at = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) * kVectorBytes;
       at < recv.size_bytes; at += stride)
    recv.store(at, reduce_ranks<T, V::kSum, V::kWorld, 4>(steps.world(), args.op, [&](int source) {
                 return load_arena<T>(peers.arena_of(source) + peers.table().staging + at);
               }));
}

__global__ void probe(const ProbeItem* items, int n_items, int rank) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n_items) return;
  std::uint64_t question;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
               : "=l"(question)
               : "l"(items[i].question)
               : "memory");
  // proof_answer(), which is constexpr, on the device.
  std::uint64_t mixed = question + (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9u;
  const std::uint64_t answer = mixed ^ mixed >> 32;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(items[i].answer), "l"(answer)
               : "memory");
}

__global__ void __launch_bounds__(kThreads)
    arm(std::byte* at, std::uint64_t size_bytes, const LineWords pattern) {
  const uint4 words =
      make_uint4(pattern.word[0], pattern.word[1], pattern.word[2], pattern.word[3]);
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
       i < size_bytes / kLineBytes; i += std::uint64_t{gridDim.x} * kThreads)
    reinterpret_cast<uint4*>(at)[i] = words;
}

}  // namespace

cudaError_t launch_announce(DeviceState* state, const Announcement& mine, bool compare,
                            cudaStream_t stream) {
  return start(announce, {1, kThreads, stream}, state, mine, compare);
}

cudaError_t launch_copy(const KernelArgs& args, std::uint64_t size_bytes,
                        const Geometry& geometry) {
  return start(copy, geometry, args, size_bytes);
}

cudaError_t launch_stage_publish(const KernelArgs& args, std::uint64_t size_bytes,
                                 const Geometry& geometry) {
  return start(stage_publish, geometry, args, size_bytes);
}

cudaError_t launch_stage_reduce(const KernelArgs& args, const Shape& shape) {
  return with_variant(shape.dtype, args.op, 0, [&](auto variant) {
    return start(stage_reduce<decltype(variant)>, shape.geometry, args);
  });
}

cudaError_t launch_probe(const ProbeItem* items, int n_items, int rank, cudaStream_t stream) {
  constexpr int kProbeThreads = 64;
  const auto n_blocks = static_cast<std::uint32_t>((n_items + kProbeThreads - 1) / kProbeThreads);
  return start(probe, {n_blocks, kProbeThreads, stream}, items, n_items, rank);
}

cudaError_t launch_arm(std::byte* at, std::uint64_t size_bytes, const LineWords& pattern,
                       const Geometry& geometry) {
  return start(arm, geometry, at, size_bytes, pattern);
}

}  // namespace librun::cuda
