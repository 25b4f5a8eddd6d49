// SPDX-License-Identifier: Apache-2.0
// The algorithms with threads as ranks, so that ThreadSanitizer sees every access.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/device.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

/// One rank of a world inside this process.
struct Rank {
  std::shared_ptr<Device> device = make_host_device("auto");
  std::vector<std::byte> arena_memory;
  std::byte* arena = nullptr;
  HostWords words{};
  std::unique_ptr<ControlBlock> control = std::make_unique<ControlBlock>();
};

class World {
 public:
  explicit World(int world, std::uint64_t first_step = 0, std::size_t arena_bytes = kMinArenaBytes)
      : ranks_(static_cast<std::size_t>(world)) {
    for (Rank& rank : ranks_) {
      rank.arena_memory.resize(arena_bytes + kPageBytes);
      const auto address = reinterpret_cast<std::uintptr_t>(rank.arena_memory.data());
      rank.arena = rank.arena_memory.data() + (kPageBytes - address % kPageBytes) % kPageBytes;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ControlBlock& control = *ranks_[r].control;
      control.gate = kGateOpen;
      control.rank = static_cast<std::uint32_t>(r);
      control.world = static_cast<std::uint32_t>(world);
      control.step = first_step;
      control.wait_ns = 30'000'000'000;
      control.words = &ranks_[r].words;
      control.layout = make_arena_layout(world, arena_bytes);
      for (std::size_t p = 0; p < ranks_.size(); ++p) control.arena[p] = ranks_[p].arena;
    }
  }

  Rank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// Runs `body(rank)` on every rank at once.
  template <class Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < size(); ++r) threads.emplace_back([&, r] { body(r); });
    for (std::thread& thread : threads) thread.join();
  }

  AllReduceArgs args(int r, const std::vector<int>& send, std::vector<int>& recv, Body body) {
    AllReduceArgs args{};
    args.control = rank(r).control.get();
    args.send = reinterpret_cast<const std::byte*>(send.data());
    args.recv = reinterpret_cast<std::byte*>(recv.data());
    args.count = send.size();
    args.dtype = LIBRUN_INT32;
    args.op = LIBRUN_SUM;
    args.body = body;
    args.send_slot = args.recv_slot = -1;
    return args;
  }

  Outcome outcome(int r) { return static_cast<Outcome>(rank(r).words.outcome); }

 private:
  std::vector<Rank> ranks_;
};

std::vector<int> input_of(int rank, std::size_t count, int call) {
  std::vector<int> input(count);
  for (std::size_t i = 0; i < count; ++i) input[i] = (rank + 1) * (static_cast<int>(i % 97) + call);
  return input;
}

}  // namespace

TEST_CASE("B03 sums are exact in any mix of algorithms and sizes, also where the counters wrap") {
  const int world = GENERATE(1, 2, 3, 5);
  const std::uint64_t first_step =
      GENERATE(std::uint64_t{0}, (std::uint64_t{1} << 32) - 9, (std::uint64_t{1} << 48) - 9);
  World ranks(world, first_step);
  const std::uint32_t whole_steps = GENERATE(0, 1);
  for (int r = 0; r < world; ++r) ranks.rank(r).control->whole_steps = whole_steps;
  std::atomic<int> wrong{0};
  ranks.run([&](int r) {
    const Body bodies[] = {Body::ll, Body::one_shot, Body::two_shot, Body::zero_copy};
    const std::size_t counts[] = {1, 14, 15, 900, 5000, 20011};
    for (int call = 0; call < 48; ++call) {
      const std::size_t count = counts[call % 6];
      std::vector<int> send = input_of(r, count, call);
      std::vector<int> recv(count, -1);
      const bool in_place = call % 3 == 0;
      std::vector<int>& out = in_place ? send : recv;
      AllReduceArgs args = ranks.args(r, send, out, bodies[call / 6 % 4]);
      args.check = call % 2 == 0;
      ranks.rank(r).device->launch(args, nullptr);
      for (std::size_t i = 0; i < count; ++i)
        wrong += out[i] != world * (world + 1) / 2 * (static_cast<int>(i % 97) + call);
    }
  });
  CHECK(wrong == 0);
  for (int r = 0; r < world; ++r) CHECK(ranks.outcome(r) == Outcome::ok);
}

TEST_CASE("where the counter wraps, fresh memory is not taken for a peer's line") {
  World ranks(2, (std::uint64_t{1} << 48) - 1);
  const std::vector<int> send(5, 7);
  std::vector<int> recv(5, -1);
  ranks.rank(0).control->wait_ns = 50'000'000;
  // Rank 1 makes no call.
  ranks.rank(0).device->launch(ranks.args(0, send, recv, Body::ll), nullptr);
  CHECK(ranks.outcome(0) == Outcome::timeout);
  CHECK(recv == std::vector<int>(5, -1));
}

TEST_CASE("zero_copy through slots: all registered, only inputs, in place") {
  const int world = 3;
  World ranks(world);
  const std::size_t count = 30011;
  const int mode = GENERATE(0, 1, 2);
  std::vector<std::vector<int>> sends;
  std::vector<std::vector<int>> recvs(3, std::vector<int>(count, -1));
  for (int r = 0; r < world; ++r) sends.push_back(input_of(r, count, 1));
  for (int r = 0; r < world; ++r)
    for (std::size_t p = 0; p < 3; ++p) {
      const auto add = [&](int slot, std::vector<int>& memory) {
        Slot& row = ranks.rank(r).control->slots[slot];
        row.base[p] = reinterpret_cast<std::byte*>(memory.data());
        row.size_bytes = count * sizeof(int);
        row.live = 1;
      };
      add(0, sends[p]);
      add(1, recvs[p]);
    }
  ranks.run([&](int r) {
    const auto at = static_cast<std::size_t>(r);
    AllReduceArgs args =
        ranks.args(r, sends[at], mode == 2 ? sends[at] : recvs[at], Body::zero_copy);
    args.send_slot = 0;
    args.recv_slot = mode == 0 ? 1 : mode == 1 ? -1 : 0;
    ranks.rank(r).device->launch(args, nullptr);
  });
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t i = 0; i < count; ++i)
      wrong += (mode == 2 ? sends : recvs)[r][i] != 6 * (static_cast<int>(i % 97) + 1);
  CHECK(wrong == 0);
}

TEST_CASE("a refusal reaches all ranks, names the lowest, and costs one step") {
  World ranks(4);
  std::vector<int> untouched(4, 0);
  ranks.run([&](int r) {
    const std::vector<int> send = input_of(r, 1000, 0);
    std::vector<int> recv(1000, -7);
    AllReduceArgs args = ranks.args(r, send, recv, Body::two_shot);
    if (r == 1 || r == 3) args.reject = Reject::misaligned;
    ranks.rank(r).device->launch(args, nullptr);
    untouched[static_cast<std::size_t>(r)] =
        std::count(recv.begin(), recv.end(), -7) == 1000 && ranks.rank(r).words.rank == 1;
  });
  for (int r = 0; r < 4; ++r) {
    CHECK(ranks.outcome(r) == Outcome::rejected);
    CHECK(untouched[static_cast<std::size_t>(r)]);
    CHECK(ranks.rank(r).control->step == 1);
  }
}

TEST_CASE("calls that differ are found before anything is written") {
  World ranks(3);
  std::atomic<int> touched{0};
  ranks.run([&](int r) {
    const std::vector<int> send = input_of(r, r == 2 ? 999 : 1000, 0);
    std::vector<int> recv(1000, -7);
    AllReduceArgs args = ranks.args(r, send, recv, Body::one_shot);
    args.check = true;
    ranks.rank(r).device->launch(args, nullptr);
    touched += std::count(recv.begin(), recv.end(), -7) != 1000;
  });
  CHECK(touched == 0);
  for (int r = 0; r < 3; ++r) CHECK(ranks.outcome(r) == Outcome::mismatch);
}

TEST_CASE("a wait ends at its deadline, and at the abort word, naming the peer") {
  World ranks(2);
  const bool abort = GENERATE(true, false);
  ranks.rank(0).control->wait_ns = abort ? 30'000'000'000 : 30'000'000;
  const std::vector<int> send = input_of(0, 10, 0);
  std::vector<int> recv(10, -7);
  std::thread raiser;
  if (abort)
    raiser = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::atomic_ref(ranks.rank(0).words.abort).store(1);
    });
  ranks.rank(0).device->launch(ranks.args(0, send, recv, Body::ll), nullptr);
  if (abort) raiser.join();
  CHECK(ranks.outcome(0) == (abort ? Outcome::aborted : Outcome::timeout));
  CHECK(ranks.rank(0).words.rank == 1);
  CHECK(recv == std::vector<int>(10, -7));
}

TEST_CASE("a closed gate stops a launch before it touches a peer") {
  World ranks(2);
  ranks.rank(0).control->gate = kGateClosed;
  for (std::byte*& arena : ranks.rank(0).control->arena) arena = nullptr;
  const std::vector<int> send = input_of(0, 10, 0);
  std::vector<int> recv(10, -7);
  ranks.rank(0).device->launch(ranks.args(0, send, recv, Body::one_shot), nullptr);
  CHECK(ranks.outcome(0) == Outcome::gate_closed);
  CHECK(ranks.rank(0).words.caught == 1);
  CHECK(recv == std::vector<int>(10, -7));
}

TEST_CASE("proof answers differ by rank and by question") {
  CHECK(proof_answer(1, 0) != proof_answer(1, 1));
  CHECK(proof_answer(1, 0) != proof_answer(2, 0));
  CHECK(proof_answer(0, 0) != 0);
}
