// SPDX-License-Identifier: Apache-2.0
// Every algorithm x type x op x size against the model, bit by bit, at all offsets.
#include <time.h>

#include <chrono>
#include <set>
#include <thread>

#include "support/reduction_case.hpp"

using namespace librun_test;

namespace {

constexpr librun_algo_t kAlgos[] = {LIBRUN_ALGO_AUTO,     LIBRUN_ALGO_LL,
                                    LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT,
                                    LIBRUN_ALGO_STEPPED,  LIBRUN_ALGO_ZERO_COPY};
constexpr std::size_t kSmallArenaBytes = 64 << 10;
constexpr std::size_t kRegisteredBytes = 1 << 20;

/// Counts around pages, since staging areas are whole pages, and one that needs many chunks.
std::vector<std::size_t> counts_for(librun_dtype_t dtype, bool many) {
  const std::size_t element_bytes = librun_dtype_bytes(dtype);
  std::set<std::size_t> counts{0, 1, 3, 8, 17, 1000};
  if (many) {
    for (const std::size_t pages : {1, 2, 3, 4, 5}) {
      const std::size_t whole = pages * 4096 / element_bytes;
      counts.insert({whole - 1, whole, whole + 1});
    }
    // Lines of ll carry 56 bytes, 64 of them a step.
    counts.insert({56 / element_bytes + 1, 3584 / element_bytes, 3584 / element_bytes + 1});
    counts.insert(150001 / element_bytes);
  }
  return {counts.begin(), counts.end()};
}

void run_all_types(librun_comm_t comm, const RegisteredMemory* memory) {
  std::uint64_t hash = 0;
  ReductionCase test;
  for (const librun_dtype_t dtype : kAllDtypes) {
    for (const librun_op_t op : kAllOps) {
      for (const std::size_t count : counts_for(dtype, op == LIBRUN_SUM)) {
        test.dtype = dtype;
        test.op = op;
        test.count = count;
        ++test.k;
        ++test.shift;
        test.place = static_cast<Place>(test.k % 3);
        const std::string difference = run_case(comm, test, memory, &hash);
        INFO(describe(test));
        CHECK(difference == "");
      }
    }
  }
  CHECK(same_on_all_ranks(hash));
}

}  // namespace

TEST_CASE("each algorithm gives the model's bits for all types, ops and sizes") {
  for (const librun_algo_t algo : kAlgos) {
    INFO(librun_algo_name(algo));
    librun::Communicator comm = create(config_of(algo, kSmallArenaBytes));
    if (algo == LIBRUN_ALGO_ZERO_COPY) {
      const RegisteredMemory memory(comm.get(), kRegisteredBytes);
      run_all_types(comm.get(), &memory);
    } else {
      run_all_types(comm.get(), nullptr);
    }
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("stepped alone, for tools that make kernels too slow to wait", "[.][stepped]") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_STEPPED, kSmallArenaBytes));
  ReductionCase test;
  for (int cycle = 0; cycle < 2; ++cycle) {
    for (const librun_dtype_t dtype : kAllDtypes) {
      for (const std::size_t count : {std::size_t{17}, std::size_t{1000}, std::size_t{40001}}) {
        test.dtype = dtype;
        test.count = count;
        ++test.k;
        ++test.shift;
        test.place = static_cast<Place>(test.k % 3);
        INFO(describe(test));
        CHECK(run_case(comm.get(), test) == "");
      }
    }
    CHECK(comm.suspend());
    CHECK(comm.resume());
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B28 every offset and way of placing, different on each rank") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_AUTO, kSmallArenaBytes));
  ReductionCase test;
  for (const librun_dtype_t dtype : {LIBRUN_FLOAT16, LIBRUN_FLOAT32, LIBRUN_FLOAT64}) {
    for (const std::size_t count : {std::size_t{1000}, std::size_t{20003}}) {
      for (test.shift = 0; test.shift < 6; ++test.shift) {
        for (const Place place : {Place::out_of_place, Place::in_place, Place::mixed}) {
          test.dtype = dtype;
          test.count = count;
          test.place = place;
          ++test.k;
          INFO(describe(test));
          CHECK(run_case(comm.get(), test) == "");
        }
      }
    }
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B23 all ranks and all algorithms give the same bits") {
  std::set<std::uint64_t> hashes;
  for (const librun_algo_t algo : kAlgos) {
    librun::Communicator comm = create(config_of(algo, kSmallArenaBytes));
    std::uint64_t hash = 0;
    {
      const RegisteredMemory memory(comm.get(), kRegisteredBytes);
      ReductionCase test;
      for (test.k = 0; test.k < 20; ++test.k) {
        for (const librun_dtype_t dtype : {LIBRUN_FLOAT32, LIBRUN_FLOAT16, LIBRUN_BFLOAT16}) {
          test.dtype = dtype;
          test.count = 1 + test.k * 211;
          test.shift = static_cast<int>(test.k);
          INFO(librun_algo_name(algo) << ": " << describe(test));
          CHECK(run_case(comm.get(), test, &memory, &hash) == "");
        }
      }
    }
    CHECK(same_on_all_ranks(hash));
    hashes.insert(hash);
    CHECK_OK(librun_comm_close(comm.get()));
  }
  CHECK(hashes.size() == 1);
}

TEST_CASE("a large sum over many chunks of the default arena") {
  librun::Communicator comm = create();
  ReductionCase test;
  test.count = 1000003;
  for (const librun_op_t op : {LIBRUN_SUM, LIBRUN_MAX}) {
    test.op = op;
    ++test.k;
    CHECK(run_case(comm.get(), test) == "");
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B44 chained in-place calls and back-to-back sizes") {
  librun::Communicator comm = create();
  // Max over ranks of values that grow from call to call: a result of an earlier call shows.
  DeviceVector<std::int64_t> data(5000);
  for (std::int64_t k = 0; k < 200; ++k) {
    const std::size_t count = 1 + static_cast<std::size_t>(k * 37 % 5000);
    for (std::size_t i = 0; i < count; ++i)
      data[i] = k * 1000 + rank() + static_cast<std::int64_t>(i);
    CHECK_OK(
        all_reduce_and_wait(comm.get(), data.data(), data.data(), count, LIBRUN_INT64, LIBRUN_MAX));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i)
      wrong += data[i] != k * 1000 + world() - 1 + static_cast<std::int64_t>(i);
    INFO("call " << k << ", " << count << " elements");
    CHECK(wrong == 0);
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B43 a count of zero needs no buffers") {
  librun::Communicator comm = create();
  CHECK_OK(all_reduce_and_wait(comm.get(), nullptr, nullptr, 0, LIBRUN_FLOAT32, LIBRUN_SUM));
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a rank that waits long for a late one leaves its core to others") {
  if (world() == 1 || on_cuda()) return;  // nobody to wait for; there the stream waits
  librun::Communicator comm = create();
  const auto cpu_ms = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  };
  constexpr std::chrono::milliseconds kLate{1000};
  barrier();
  if (rank() == 0) std::this_thread::sleep_for(kLate);
  const double before = cpu_ms();
  CHECK(sum_difference(comm, 1) == "");
  const double used = cpu_ms() - before;
  INFO("CPU time in " << kLate.count() << " ms of waiting: " << used << " ms");
  // It yields for 1 ms, and may sleep less than it should for 4 more.
  if (rank() != 0) CHECK(used < 5 + 0.02 * static_cast<double>(kLate.count()));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("ranks that wait in different ways cut their messages alike") {
  const ScopedEnv env{{"LIBRUN_SPIN", rank() == 0 ? "yield" : "spin"}};
  for (const librun_algo_t algo : {LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT}) {
    INFO(librun_algo_name(algo));
    librun::Communicator comm = create(config_of(algo));
    for (const std::size_t count : {100, 8192, 8193, 65536, 200001})
      CHECK(sum_difference(comm, count, count) == "");
    CHECK_OK(librun_comm_close(comm.get()));
  }
}
