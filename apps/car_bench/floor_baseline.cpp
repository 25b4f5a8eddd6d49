// SPDX-License-Identifier: Apache-2.0
// What the copies alone cost on the host: the same traffic as librun's, and nobody waits. The sums
// are wrong, of course. Where ranks share cores, each of librun's waits becomes one yield: every
// rank must have had its turn.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "car_bench/baseline.hpp"

namespace car::bench {
namespace {

constexpr std::size_t kAreaBytes = std::size_t{1} << 20;  // of each rank
constexpr std::size_t kBlockBytes = std::size_t{2} << 10;
constexpr std::size_t kStepBytes = std::size_t{256} << 10;
constexpr std::size_t kResultAt = kAreaBytes - kStepBytes;
constexpr std::size_t kOneShotMaxBytes = std::size_t{8} << 10;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
void add(std::byte* out, const std::byte* a, const std::byte* b, std::size_t size_bytes) {
  auto* to = reinterpret_cast<float*>(out);
  const auto* x = reinterpret_cast<const float*>(a);
  const auto* y = reinterpret_cast<const float*>(b);
  for (std::size_t i = 0; i < size_bytes / sizeof(float); ++i) to[i] = x[i] + y[i];
}

/// Memory that all ranks of the node see. Collective.
class SharedAreas {
 public:
  SharedAreas() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_);
    void* mine = nullptr;
    MPI_Win_allocate_shared(kAreaBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_);
    std::memset(mine, 0, kAreaBytes);
    for (int rank = 0; rank < world_; ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &base);
      areas_.push_back(static_cast<std::byte*>(base));
    }
  }
  void free() { MPI_Win_free(&window_); }

  int rank() const { return rank_; }
  int world() const { return world_; }
  std::byte* of(int rank) const { return areas_[static_cast<std::size_t>(rank)]; }
  std::byte* mine() const { return of(rank_); }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  int world_ = 0;
  std::vector<std::byte*> areas_;
};

class FloorBaseline final : public Baseline {
 public:
  explicit FloorBaseline(const Options& options) : aggregate_(options.aggregate) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    // Fails where the kernel has more cores than a set has room for.
    if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
    int mine = CPU_COUNT(&cores);
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    // Bound to a core each, or free among enough of them.
    shared_ = all < areas_.world() && !(all == 1 && cores_differ(cores));
  }

  bool takes(const Work& work) const override {
    return work.dtype == LIBRUN_FLOAT32 && work.op == LIBRUN_SUM;
  }

  Way way(const Work& work, librun::Communicator& /*comm*/) override {
    Way way;
    way.input = {work.send, work.size_bytes};
    way.calls_each = aggregate_;
    way.call = [this, work] {
      for (int i = 0; i < aggregate_; ++i) call(work);
    };
    return way;
  }

  void close() override { areas_.free(); }

 private:
  static bool cores_differ(const cpu_set_t& cores) {
    int mine = 0;
    while (!CPU_ISSET(mine, &cores)) ++mine;
    int world = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    std::vector<int> all(static_cast<std::size_t>(world));
    MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
  }

  void step_over() const {
    if (shared_) ::sched_yield();
  }

  void call(const Work& work) {
    const bool one_shot = areas_.world() == 2 || work.size_bytes <= kOneShotMaxBytes;
    for (std::size_t at = 0; at < work.size_bytes; at += kStepBytes) {
      const std::size_t bytes = std::min(kStepBytes, work.size_bytes - at);
      one_shot ? copy_and_add(work, at, bytes) : scatter_and_gather(work, at, bytes);
    }
    if (!one_shot) step_over();
  }

  /// In turns of a block, since stores and loads overlap.
  void copy_and_add(const Work& work, std::size_t begin, std::size_t size_bytes) {
    const std::size_t place = next_place(size_bytes);
    for (std::size_t done = 0; done < size_bytes; done += kBlockBytes) {
      const std::size_t bytes = std::min(kBlockBytes, size_bytes - done);
      const std::byte* from = work.send + begin + done;
      std::byte* to = work.recv + begin + done;
      std::memcpy(areas_.mine() + place + done, from, bytes);
      for (int peer = 0; peer < areas_.world(); ++peer) {
        if (peer == areas_.rank()) continue;
        add(to, from, areas_.of(peer) + place + done, bytes);
        from = to;
      }
    }
    step_over();
  }

  void scatter_and_gather(const Work& work, std::size_t begin, std::size_t size_bytes) {
    const auto world = static_cast<std::size_t>(areas_.world());
    const std::size_t part = (size_bytes / world + 63) / 64 * 64;
    const auto begin_of = [&](int rank) {
      return std::min(part * static_cast<std::size_t>(rank), size_bytes);
    };
    const std::size_t own = begin_of(areas_.rank());
    const std::size_t own_end = begin_of(areas_.rank() + 1);
    std::memcpy(areas_.mine(), work.send + begin, own);
    std::memcpy(areas_.mine() + own_end, work.send + begin + own_end, size_bytes - own_end);
    const std::byte* from = work.send + begin + own;
    std::byte* to = work.recv + begin + own;
    for (int peer = 0; peer < areas_.world(); ++peer) {
      if (peer == areas_.rank()) continue;
      add(to, from, areas_.of(peer) + own, own_end - own);
      from = to;
    }
    std::memcpy(areas_.mine() + kResultAt, to, own_end - own);
    step_over();
    for (int peer = 0; peer < areas_.world(); ++peer)
      if (peer != areas_.rank())
        std::memcpy(work.recv + begin + begin_of(peer), areas_.of(peer) + kResultAt,
                    begin_of(peer + 1) - begin_of(peer));
  }

  /// Small steps stay where they are, others take turns in the area.
  std::size_t next_place(std::size_t size_bytes) {
    if (size_bytes < kOneShotMaxBytes) return 0;
    const std::size_t places = kAreaBytes / size_bytes;
    return steps_++ % places * size_bytes;
  }

  SharedAreas areas_;
  int aggregate_;
  bool shared_ = false;
  std::size_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Baseline> make_floor_baseline(const Options& options) {
  return std::make_unique<FloorBaseline>(options);
}

}  // namespace car::bench
