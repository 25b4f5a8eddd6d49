// SPDX-License-Identifier: Apache-2.0
// Small calls to count the instructions of, under callgrind. No rank waits: the call through the
// API has no peers, and in the others the peers have published already.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "librun/librun.h"

using namespace librun;

namespace {

constexpr int kCalls = 100;

/// Rank 0 of a world whose other ranks always publish what they must before it looks.
class PunctualWorld {
 public:
  PunctualWorld(int world, Body body, std::size_t size_bytes)
      : send_(size_bytes), recv_(size_bytes) {
    control_->gate = kGateOpen;
    control_->world = static_cast<std::uint32_t>(world);
    control_->wait_ns = 1'000'000'000;
    control_->words = words_.get();
    control_->layout = make_arena_layout(world, kMinArenaBytes);
    for (int rank = 0; rank < world; ++rank) {
      void* arena = std::aligned_alloc(kPageBytes, kMinArenaBytes);
      control_->arena[rank] = static_cast<std::byte*>(arena);
      std::fill_n(control_->arena[rank], kMinArenaBytes, std::byte{0});
    }
    args_.control = control_.get();
    args_.send = send_.data();
    args_.recv = recv_.data();
    args_.count = size_bytes / sizeof(float);
    args_.dtype = LIBRUN_FLOAT32;
    args_.op = LIBRUN_SUM;
    args_.body = body;
    args_.send_slot = args_.recv_slot = -1;
  }
  ~PunctualWorld() {
    for (std::uint32_t rank = 0; rank < control_->world; ++rank) std::free(control_->arena[rank]);
  }
  PunctualWorld(const PunctualWorld&) = delete;
  PunctualWorld& operator=(const PunctualWorld&) = delete;

  void publish_for_peers() {
    const std::uint64_t step = step_after(control_->step);
    for (std::uint32_t rank = 1; rank < control_->world; ++rank)
      reinterpret_cast<Line*>(control_->arena[rank] + control_->layout.lines[step & 1])->epoch =
          make_epoch(control_->generation, step);
  }
  void launch() { device_->launch(args_, nullptr); }
  bool ok() const { return words_->outcome == 0; }

 private:
  std::shared_ptr<Device> device_ = make_host_device("auto");
  std::unique_ptr<ControlBlock> control_ = std::make_unique<ControlBlock>();
  std::unique_ptr<HostWords> words_ = std::make_unique<HostWords>();
  std::vector<std::byte> send_, recv_;
  AllReduceArgs args_{};
};

librun_comm_t comm{};
float value = 1, sum = 0;

}  // namespace

/// What callgrind is told to count.
extern "C" {
__attribute__((noinline)) void counted_launch(void* world) {
  static_cast<PunctualWorld*>(world)->launch();
}
__attribute__((noinline)) librun_status_t counted_call() {
  return librun_all_reduce(comm, &value, &sum, 1, LIBRUN_FLOAT32, LIBRUN_SUM, nullptr);
}
}

namespace {

int run_launches(int world, Body body, std::size_t size_bytes) {
  PunctualWorld ranks(world, body, size_bytes);
  for (int i = 0; i < kCalls; ++i) {
    ranks.publish_for_peers();
    counted_launch(&ranks);
  }
  return ranks.ok() ? 0 : 1;
}

int run_calls() {
  MPI_Init(nullptr, nullptr);
  librun_config_t config;
  librun_config_init(&config);
  bool ok = librun_comm_create(MPI_COMM_WORLD, &config, &comm) == LIBRUN_OK;
  for (int i = 0; i < kCalls; ++i) ok = ok && counted_call() == LIBRUN_OK && sum == value;
  ok = ok && librun_comm_close(comm) == LIBRUN_OK;
  MPI_Finalize();
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "api") return run_calls();
  if (name == "ll_np2_8B") return run_launches(2, Body::ll, 8);
  if (name == "ll_np8_8B") return run_launches(8, Body::ll, 8);
  if (name == "one_shot_np2_1K") return run_launches(2, Body::one_shot, 1024);
  if (name == "one_shot_np8_4K") return run_launches(8, Body::one_shot, 4096);
  std::fprintf(stderr, "usage: small_calls CASE\n");
  return 2;
}
