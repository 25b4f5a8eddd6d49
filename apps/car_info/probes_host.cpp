// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "car_info/pointer_chain.hpp"
#include "car_info/probes.hpp"

namespace car::info {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

class HostProbes final : public Probes {
 public:
  explicit HostProbes(bool shares_cores) : shares_cores_(shares_cores) {}

  std::optional<double> bounce_ns(std::uint32_t* mine, std::uint32_t* theirs, bool first,
                                  int rounds) override {
    const std::atomic_ref<std::uint32_t> in(*mine);
    const std::atomic_ref<std::uint32_t> out(*theirs);
    const auto start = Clock::now();
    for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(rounds); ++round) {
      if (first) out.store(round, std::memory_order_release);
      for (int polls = 1; in.load(std::memory_order_acquire) < round; ++polls) {
        if (shares_cores_) sched_yield();
        if (polls % 1024 == 0 && Clock::now() - start > std::chrono::seconds(5)) return {};
      }
      if (!first) out.store(round, std::memory_order_release);
    }
    return us_since(start) * 1e3 / rounds / 2;
  }

  double move_us(Move move, std::byte* own, std::byte* other, std::size_t size_bytes,
                 int /*blocks*/, int repeats) override {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i)
      move == Move::write ? std::memcpy(other, own, size_bytes)
                          : std::memcpy(own, other, size_bytes);
    return us_since(start) / repeats;
  }
  std::vector<int> block_counts() const override { return {0}; }

  double load_ns(std::byte* memory, std::size_t size_bytes) override {
    constexpr int kLoads = 1 << 18;
    const auto chain = make_chain(size_bytes);
    std::memcpy(memory, chain.data(), chain.size() * sizeof(chain[0]));
    std::uint32_t at = 0;
    const auto walk = [&] {
      for (int i = 0; i < kLoads; ++i)
        at = *reinterpret_cast<const volatile std::uint32_t*>(memory + at * kChainStrideBytes);
    };
    walk();
    const auto start = Clock::now();
    walk();
    return us_since(start) * 1e3 / kLoads;
  }

  std::optional<double> node_us(bool /*early*/) override { return {}; }

 private:
  bool shares_cores_;
};

}  // namespace

std::unique_ptr<Probes> make_host_probes(bool shares_cores) {
  return std::make_unique<HostProbes>(shares_cores);
}

}  // namespace car::info
