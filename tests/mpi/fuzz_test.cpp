// SPDX-License-Identifier: Apache-2.0
// Random calls against a small model of the states: first the same on all ranks, then one rank that
// does something else. LIBRUN_TEST_SEED and LIBRUN_TEST_STEPS choose another and a longer run.
#include <chrono>
#include <cstdlib>
#include <random>

#include "support/job.hpp"
#include "support/wait_for.hpp"

using namespace librun_test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kDeadline{1500};

std::uint64_t number_from(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : fallback;
}

/// The same on every rank: draws decide for all.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  int rank() { return static_cast<int>(below(static_cast<std::size_t>(world()))); }

 private:
  std::mt19937_64 random_;
};

/// A communicator and what the model says of it.
class Subject {
 public:
  explicit Subject(Dice& dice) : dice_(dice) { renew(); }
  ~Subject() { librun_comm_close(comm_.get()); }

  void step() {
    INFO("step " << ++steps_ << ", model state " << librun_state_name(state_));
    const std::size_t draw = dice_.below(100);
    if (draw < 30)
      reduce();
    else if (draw < 42)
      expect("suspend", librun_suspend(comm_.get(), -1), state_ == LIBRUN_SUSPENDED,
             LIBRUN_SUSPENDED);
    else if (draw < 56)
      expect("resume", librun_resume(comm_.get(), -1), state_ == LIBRUN_ACTIVE, LIBRUN_ACTIVE);
    else if (draw < 66)
      registered_ ? unregister() : register_memory();
    else if (draw < 76)
      replay();
    else if (draw < 84)
      bad_argument();
    else if (draw < 90)
      local_calls();
    else if (draw < 94)
      abort();
    else
      renew();
    CHECK(comm_.state() == state_);
    if (state_ == LIBRUN_FAILED_STATE && dice_.below(3) == 0) renew();
  }

  librun_comm_t get() const { return comm_.get(); }
  void renew() {
    if (comm_) CHECK_OK(librun_comm_close(comm_.get()));
    const librun_algo_t algos[] = {LIBRUN_ALGO_AUTO, LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT,
                                   LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED};
    comm_ = create(config_of(algos[dice_.below(5)]));
    registered_ = nullptr;
    memory_ = comm_.allocate(1 << 16);
    state_ = LIBRUN_ACTIVE;
  }
  bool failed() const { return comm_.state() == LIBRUN_FAILED_STATE; }

 private:
  /// What a call gives that only an active communicator takes.
  librun_status_t when_active() const {
    if (state_ == LIBRUN_ACTIVE) return LIBRUN_OK;
    return state_ == LIBRUN_FAILED_STATE ? LIBRUN_FAILED : LIBRUN_INVALID_STATE;
  }

  void expect(const char* call, librun_status_t status, bool there_already, librun_state_t next) {
    INFO(call << ": " << last_error());
    if (state_ == LIBRUN_FAILED_STATE) {
      CHECK(status == LIBRUN_FAILED);
      return;
    }
    CHECK(status == (there_already ? LIBRUN_ALREADY_THERE : LIBRUN_OK));
    state_ = next;
  }

  void reduce() {
    const std::size_t count = std::size_t{1} << dice_.below(16);
    const std::string difference = sum_difference(comm_, ++calls_, count + dice_.below(7));
    INFO(difference);
    CHECK(difference.empty() == (state_ == LIBRUN_ACTIVE));
  }
  void register_memory() {
    const librun_status_t status = librun_register(comm_.get(), memory_, 1 << 16, &registered_);
    CHECK(status == when_active());
    if (status != LIBRUN_OK) registered_ = nullptr;
  }
  void unregister() {
    CHECK_OK(librun_unregister(comm_.get(), registered_));
    registered_ = nullptr;
  }
  void replay() {
    const Stream stream;
    DeviceVector<float> data(100, 1);
    const librun_status_t begun = librun_graph_begin(comm_.get(), stream.get());
    CHECK(begun == when_active());
    if (begun != LIBRUN_OK) return;
    CHECK_OK(librun_all_reduce(comm_.get(), data.data(), data.data(), data.size(), LIBRUN_FLOAT32,
                               LIBRUN_SUM, stream.get()));
    CHECK_STATUS(librun_suspend(comm_.get(), -1), LIBRUN_REJECTED);
    librun_graph_t graph{};
    CHECK_OK(librun_graph_end(comm_.get(), stream.get(), &graph));
    CHECK(data[0] == 1);
    for (float sum = 1; sum < 100; sum *= static_cast<float>(world() + 1)) {
      CHECK_OK(launch_and_wait(comm_.get(), graph, stream.get()));
      CHECK(data[99] == data[0]);
    }
    CHECK(data[0] > 0);
    CHECK_OK(librun_graph_destroy(graph));
  }
  void bad_argument() {
    const bool culprit = rank() == dice_.rank();
    DeviceVector<float> data(64, 3);
    const librun_status_t status =
        all_reduce_and_wait(comm_.get(), culprit ? nullptr : data.data(), data.data(), data.size(),
                            LIBRUN_FLOAT32, LIBRUN_SUM);
    CHECK(status == (state_ == LIBRUN_ACTIVE ? LIBRUN_INVALID_ARGUMENT : when_active()));
    CHECK(data[0] == 3);
  }
  void local_calls() {
    void* memory = nullptr;
    bool failed = state_ == LIBRUN_FAILED_STATE;
    CHECK(librun_malloc(comm_.get(), 5000, &memory) == (failed ? LIBRUN_FAILED : LIBRUN_OK));
    CHECK_OK(librun_free(comm_.get(), memory));
    CHECK(librun_check(comm_.get()) == (failed ? LIBRUN_FAILED : LIBRUN_OK));
    CHECK(librun_synchronize(comm_.get(), nullptr) == (failed ? LIBRUN_FAILED : LIBRUN_OK));
    CHECK_STATUS(librun_free(comm_.get(), &failed), LIBRUN_INVALID_ARGUMENT);
  }
  void abort() {
    if (state_ == LIBRUN_SUSPENDED) return;  // its news comes with the next resume: see lifecycle
    barrier();
    if (rank() == dice_.rank()) CHECK_OK(librun_abort(comm_.get(), "drawn"));
    CHECK(wait_for([&] { return failed(); }));
    state_ = LIBRUN_FAILED_STATE;
    barrier();
  }

  Dice& dice_;
  librun::Communicator comm_;
  librun_state_t state_ = LIBRUN_ACTIVE;
  void* memory_ = nullptr;
  librun_buffer_t registered_ = nullptr;
  std::uint64_t calls_ = 0;
  int steps_ = 0;
};

/// One of the collective calls. @return its status
librun_status_t collective(librun_comm_t comm, std::size_t which) {
  const int timeout_ms = static_cast<int>(kDeadline.count());
  DeviceVector<float> data(200, 1);
  librun_buffer_t buffer{};
  switch (which) {
    case 0:
      return all_reduce_and_wait(comm, data.data(), data.data(), data.size(), LIBRUN_FLOAT32,
                                 LIBRUN_SUM);
    case 1:
      return librun_suspend(comm, timeout_ms);
    case 2:
      return librun_resume(comm, timeout_ms);
    case 3:
      return librun_register(comm, data.data(), 800, &buffer);
    default:
      return librun_comm_close(comm);
  }
}

}  // namespace

TEST_CASE("random calls, the same on all ranks, do what the model says") {
  const std::uint64_t seed = number_from("LIBRUN_TEST_SEED", 20261130);
  INFO("LIBRUN_TEST_SEED=" << seed);
  Dice dice(seed);
  Subject subject(dice);
  const std::uint64_t steps = number_from("LIBRUN_TEST_STEPS", 250);
  for (std::uint64_t step = 0; step < steps; ++step) subject.step();
}

TEST_CASE("a rank that makes another call holds nobody beyond the deadline, and all can close") {
  if (world() == 1) return;  // one rank agrees with itself
  const std::uint64_t seed = number_from("LIBRUN_TEST_SEED", 20261130);
  const std::string deadline = std::to_string(kDeadline.count());
  const ScopedEnv env{{"LIBRUN_TIMEOUT_MS", deadline}, {"LIBRUN_CALL_TIMEOUT_MS", deadline}};
  Dice dice(seed + 1);
  const std::uint64_t rounds = number_from("LIBRUN_TEST_STEPS", 250) / 30;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Subject subject(dice);
    const bool suspended = dice.below(2) == 0;
    if (suspended) CHECK_OK(librun_suspend(subject.get(), -1));
    const int odd_rank = dice.rank();
    const std::size_t usual = dice.below(5);
    const std::size_t odd = (usual + 1 + dice.below(4)) % 5;
    INFO("LIBRUN_TEST_SEED=" << seed << ", round " << round << ", suspended " << suspended
                             << ", call " << usual << ", rank " << odd_rank << " call " << odd);
    barrier();
    const auto start = Clock::now();
    const librun_status_t status = collective(subject.get(), rank() == odd_rank ? odd : usual);
    INFO(librun_status_string(status) << ": " << last_error());
    CHECK(Clock::now() - start < 2 * kDeadline + std::chrono::seconds(2));
    barrier();
    const auto closing = Clock::now();
    static_cast<void>(librun_comm_close(subject.get()));
    CHECK_OK(librun_comm_close(subject.get()));
    CHECK(Clock::now() - closing < 2 * kDeadline + std::chrono::seconds(2));
    barrier();
    librun::Communicator next = create();
    CHECK(sum_difference(next, round) == "");
    next.close();
  }
}
