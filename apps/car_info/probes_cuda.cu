// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "car_info/pointer_chain.hpp"
#include "car_info/probes.hpp"
#include "common/cuda_check.hpp"

namespace car::info {
namespace {

constexpr int kThreads = 512;
constexpr int kNodes = 100;

__device__ std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

/// *elapsed_ns stays 0 when the peer does not answer: nothing hangs.
__global__ void bounce(const std::uint32_t* mine, std::uint32_t* theirs, bool first,
                       std::uint32_t rounds, std::uint64_t* elapsed_ns) {
  constexpr std::uint64_t kLimitNs = 2'000'000'000;
  const std::uint64_t start = now_ns();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (first)
      asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(round) : "memory");
    std::uint32_t seen = 0;
    for (std::uint32_t polls = 1; seen < round; ++polls) {
      asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
      if (polls % 1024 == 0 && now_ns() - start > kLimitNs) return;
    }
    if (!first)
      asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(round) : "memory");
  }
  *elapsed_ns = now_ns() - start;
}

/// Four loads under way in each thread.
__global__ void __launch_bounds__(kThreads) copy(uint4* to, const uint4* from, std::size_t n) {
  constexpr int kUnroll = 4;
  const std::size_t stride = std::size_t{gridDim.x} * kThreads;
  std::size_t i = blockIdx.x * std::size_t{kThreads} + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < n; i += kUnroll * stride) {
    uint4 values[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) values[u] = __ldcg(from + i + u * stride);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) to[i + u * stride] = values[u];
  }
  for (; i < n; i += stride) to[i] = __ldcg(from + i);
}

__global__ void walk(const std::byte* memory, int loads, std::uint32_t* end,
                     std::uint64_t* elapsed) {
  std::uint32_t at = *end;  // where the walk before this one came to
  const long long start = clock64();
  for (int i = 0; i < loads; ++i)
    at = __ldcg(reinterpret_cast<const std::uint32_t*>(memory + at * kChainStrideBytes));
  *end = at;
  *elapsed = static_cast<std::uint64_t>(clock64() - start);
}

__global__ void nothing() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

class CudaProbes final : public Probes {
 public:
  explicit CudaProbes(Device& device)
      : device_(device),
        stream_(make_stream(device)),
        timer_(device),
        words_(device, 2 * sizeof(std::uint64_t)) {
    check_cuda(cudaDeviceGetAttribute(&n_sms_, cudaDevAttrMultiProcessorCount, device.ordinal()),
               "cudaDeviceGetAttribute");
    check_cuda(cudaDeviceGetAttribute(&clock_khz_, cudaDevAttrClockRate, device.ordinal()),
               "cudaDeviceGetAttribute");
    int major = 0;
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.ordinal()),
               "cudaDeviceGetAttribute");
    has_early_ = major >= 9;
  }

  std::optional<double> bounce_ns(std::uint32_t* mine, std::uint32_t* theirs, bool first,
                                  int rounds) override {
    device_.fill(words_.data(), std::byte{0}, sizeof(std::uint64_t));
    bounce<<<1, 1, 0, stream()>>>(mine, theirs, first, static_cast<std::uint32_t>(rounds), word(0));
    finish("bounce");
    const auto elapsed_ns = static_cast<double>(read(0));
    if (elapsed_ns == 0) return {};
    return elapsed_ns / rounds / 2;
  }

  double move_us(Move move, std::byte* own, std::byte* other, std::size_t size_bytes, int blocks,
                 int repeats) override {
    auto* to = reinterpret_cast<uint4*>(move == Move::write ? other : own);
    const auto* from = reinterpret_cast<const uint4*>(move == Move::write ? own : other);
    timer_.start(stream_.get());
    for (int i = 0; i < repeats; ++i)
      copy<<<blocks, kThreads, 0, stream()>>>(to, from, size_bytes / sizeof(uint4));
    timer_.stop(stream_.get());
    finish("copy");
    return timer_.elapsed_us() / repeats;
  }
  std::vector<int> block_counts() const override {
    std::vector<int> counts;
    for (int blocks = 1; blocks < n_sms_; blocks *= 2) counts.push_back(blocks);
    counts.push_back(n_sms_);
    return counts;
  }

  double load_ns(std::byte* memory, std::size_t size_bytes) override {
    // Once around where that is soon done, so that all of it is in the cache that it fits into;
    // what is longer is walked on, over entries that nobody has touched yet.
    constexpr int kLoads = 1 << 17;
    const auto chain = make_chain(size_bytes);
    device_.copy(memory, chain.data(), chain.size() * sizeof(chain[0]));
    device_.fill(words_.data(), std::byte{0}, 2 * sizeof(std::uint64_t));
    for (int i = 0; i < 2; ++i)
      walk<<<1, 1, 0, stream()>>>(memory, kLoads, reinterpret_cast<std::uint32_t*>(word(1)),
                                  word(0));
    finish("walk");
    return static_cast<double>(read(0)) / kLoads * 1e6 / clock_khz_;
  }

  std::optional<double> node_us(bool early) override {
    if (early && !has_early_) return {};
    device_.begin_capture(stream_.get());
    for (int i = 0; i < kNodes; ++i) launch_nothing(early && i > 0);
    const DeviceGraph graph(device_, device_.end_capture(stream_.get()));
    constexpr int kReplays = 20;
    for (int i = 0; i < 3; ++i) device_.launch(graph.get(), stream_.get());
    timer_.start(stream_.get());
    for (int i = 0; i < kReplays; ++i) device_.launch(graph.get(), stream_.get());
    timer_.stop(stream_.get());
    finish("a graph");
    return timer_.elapsed_us() / kReplays / kNodes;
  }

 private:
  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.get()); }
  std::uint64_t* word(int i) const { return reinterpret_cast<std::uint64_t*>(words_.data()) + i; }
  std::uint64_t read(int i) {
    std::uint64_t value = 0;
    device_.copy(&value, word(i), sizeof(value));
    return value;
  }
  void finish(const char* what) {
    check_cuda(cudaGetLastError(), what);
    check_cuda(cudaStreamSynchronize(stream()), what);
  }
  void launch_nothing(bool early) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream();
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    check_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(nothing), nullptr),
               "a kernel of nothing");
  }

  Device& device_;
  DeviceStream stream_;
  StreamTimer timer_;
  DeviceBuffer words_;
  int n_sms_ = 0;
  int clock_khz_ = 1;
  bool has_early_ = false;
};

}  // namespace

std::unique_ptr<Probes> make_cuda_probes(Device& device) {
  return std::make_unique<CudaProbes>(device);
}

}  // namespace car::info
