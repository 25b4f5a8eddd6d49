// SPDX-License-Identifier: Apache-2.0
// Values that trip reductions: NaN, infinities, signed zeros, subnormals, flag look-alikes.
#include <cmath>
#include <cstring>
#include <limits>

#include "support/job.hpp"

using namespace librun_test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

constexpr librun_algo_t kAlgos[] = {LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT, LIBRUN_ALGO_TWO_SHOT,
                                    LIBRUN_ALGO_STEPPED};
constexpr std::size_t kCounts[] = {1, 64, 5001};

/// Runs `check(comm)` with each algorithm, on a small arena, so that there are several chunks.
template <class Check>
void with_each_algo(Check&& check) {
  for (const librun_algo_t algo : kAlgos) {
    INFO(librun_algo_name(algo));
    librun::Communicator comm = create(config_of(algo, 64 << 10));
    check(comm.get());
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

/// Reduces what each rank puts in, out of place and in place. "" when the model agrees and all
/// ranks hold the same bits.
std::string difference(librun_comm_t comm, const std::vector<Bytes>& inputs, librun_dtype_t dtype,
                       librun_op_t op) {
  const Bytes& mine = inputs[static_cast<std::size_t>(rank())];
  const Bytes expected = reduce(inputs, dtype, op);
  const std::size_t count = mine.size() / librun_dtype_bytes(dtype);
  std::string found;
  for (const bool in_place : {false, true}) {
    DeviceBytes send(mine.begin(), mine.end());
    DeviceBytes recv(mine.size());
    std::byte* out = in_place ? send.data() : recv.data();
    if (all_reduce_and_wait(comm, send.data(), out, count, dtype, op) != LIBRUN_OK)
      return last_error();
    if (found.empty()) found = first_difference(dtype, out, expected);
    if (!same_on_all_ranks(hash_bytes(out, mine.size())) && found.empty())
      found = "the ranks hold different bits";
  }
  return found;
}

/// One value for each rank, in `count` elements.
std::vector<Bytes> one_value_each(librun_dtype_t dtype, std::size_t count,
                                  const std::vector<double>& values) {
  std::vector<Bytes> inputs;
  for (int r = 0; r < world(); ++r)
    inputs.push_back(filled(dtype, count, values[static_cast<std::size_t>(r) % values.size()]));
  return inputs;
}

std::vector<double> all_ranks(double value) {
  return std::vector<double>(static_cast<std::size_t>(world()), value);
}
std::vector<double> all_ranks_but(double value, int odd, double odd_value) {
  std::vector<double> values = all_ranks(value);
  values[static_cast<std::size_t>(odd)] = odd_value;
  return values;
}

}  // namespace

TEST_CASE("B24 16-bit sums are accumulated in fp32 and rounded once") {
  with_each_algo([](librun_comm_t comm) {
    for (const std::size_t count : {std::size_t{64}, std::size_t{100001}}) {
      std::vector<double> ones = all_ranks_but(1, 0, 256);
      CHECK(difference(comm, one_value_each(LIBRUN_BFLOAT16, count, ones), LIBRUN_BFLOAT16,
                       LIBRUN_SUM) == "");
      CHECK(difference(comm, one_value_each(LIBRUN_FLOAT16, count, {60000, 60000, -60000, -59008}),
                       LIBRUN_FLOAT16, LIBRUN_SUM) == "");
      const std::vector<double> smallest = all_ranks(std::ldexp(1.0, -24));
      CHECK(difference(comm, one_value_each(LIBRUN_FLOAT16, count, smallest), LIBRUN_FLOAT16,
                       LIBRUN_SUM) == "");
    }
  });
}

TEST_CASE("B24 the sums that rounding at each step would get wrong") {
  librun::Communicator comm = create();
  const auto check_sum = [&](librun_dtype_t dtype, const std::vector<double>& values, double sum) {
    const Bytes input = one_value_each(dtype, 1, values)[static_cast<std::size_t>(rank())];
    const DeviceBytes send(input.begin(), input.end());
    DeviceBytes recv(2);
    CHECK_OK(all_reduce_and_wait(comm.get(), send.data(), recv.data(), 1, dtype, LIBRUN_SUM));
    CHECK(first_difference(dtype, recv.data(), filled(dtype, 1, sum)) == "");
  };
  if (world() == 8) check_sum(LIBRUN_BFLOAT16, {256, 1, 1, 1, 1, 1, 1, 0}, 262);
  if (world() == 4) check_sum(LIBRUN_FLOAT16, {60000, 60000, -60000, -59008}, 992);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B25 signed zeros and subnormals are data") {
  with_each_algo([](librun_comm_t comm) {
    for (const librun_dtype_t dtype : kFloatDtypes) {
      const double tiny = dtype == LIBRUN_FLOAT16    ? std::ldexp(1.0, -24)
                          : dtype == LIBRUN_BFLOAT16 ? std::ldexp(1.0, -133)
                          : dtype == LIBRUN_FLOAT32  ? std::ldexp(1.0, -149)
                                                     : std::ldexp(1.0, -1074);
      for (const std::size_t count : kCounts) {
        INFO(librun_dtype_name(dtype) << ", " << count << " elements");
        for (const auto& values : {all_ranks(-0.0), all_ranks(0.0), all_ranks_but(0, 0, -tiny),
                                   all_ranks(-tiny), all_ranks_but(-0.0, world() - 1, 0.0)})
          for (const librun_op_t op : {LIBRUN_SUM, LIBRUN_MIN, LIBRUN_MAX})
            CHECK(difference(comm, one_value_each(dtype, count, values), dtype, op) == "");
      }
    }
  });
}

TEST_CASE("B25 any byte pattern is data") {
  with_each_algo([](librun_comm_t comm) {
    for (const librun_dtype_t dtype : kAllDtypes) {
      for (const int byte : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        for (const std::size_t count : kCounts) {
          INFO(librun_dtype_name(dtype) << ", " << count << " elements, byte " << byte);
          const Bytes bytes(count * librun_dtype_bytes(dtype), static_cast<std::byte>(byte));
          const std::vector<Bytes> inputs(static_cast<std::size_t>(world()), bytes);
          CHECK(difference(comm, inputs, dtype, LIBRUN_SUM) == "");
        }
      }
    }
  });
}

TEST_CASE("B25 data that look like the counters of the protocol") {
  with_each_algo([](librun_comm_t comm) {
    // Small numbers with a generation or a refusal in the upper bits, shifted from call to call.
    for (std::uint64_t call = 0; call < 40; ++call) {
      std::vector<std::uint64_t> words(600);
      for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = (i + call) % 50 + ((i % 3) << 48) + ((i % 5) << 58);
      Bytes bytes(words.size() * 8);
      std::memcpy(bytes.data(), words.data(), bytes.size());
      const std::vector<Bytes> inputs(static_cast<std::size_t>(world()), bytes);
      CHECK(difference(comm, inputs, LIBRUN_UINT64, LIBRUN_MAX) == "");
    }
  });
}

TEST_CASE("B48 NaN wins in every op whichever rank holds it") {
  with_each_algo([](librun_comm_t comm) {
    for (const librun_dtype_t dtype : kFloatDtypes) {
      for (const librun_op_t op : kAllOps) {
        for (int holder = 0; holder < world(); ++holder) {
          INFO(librun_dtype_name(dtype) << " " << librun_op_name(op) << ", NaN on " << holder);
          CHECK(difference(comm, one_value_each(dtype, 100, all_ranks_but(1, holder, kNaN)), dtype,
                           op) == "");
        }
        CHECK(difference(comm, one_value_each(dtype, 100, all_ranks(kNaN)), dtype, op) == "");
      }
    }
  });
}

TEST_CASE("B48 infinities") {
  with_each_algo([](librun_comm_t comm) {
    for (const librun_dtype_t dtype : kFloatDtypes) {
      for (const librun_op_t op : kAllOps) {
        INFO(librun_dtype_name(dtype) << " " << librun_op_name(op));
        for (const auto& values :
             {all_ranks_but(1, 0, kInfinity), all_ranks_but(kInfinity, world() - 1, -kInfinity),
              all_ranks_but(0, 0, -kInfinity)})
          CHECK(difference(comm, one_value_each(dtype, 100, values), dtype, op) == "");
      }
    }
  });
}

TEST_CASE("B48 integers wrap") {
  with_each_algo([](librun_comm_t comm) {
    CHECK(difference(comm, one_value_each(LIBRUN_INT8, 100, {120, 100}), LIBRUN_INT8, LIBRUN_SUM) ==
          "");
    CHECK(difference(comm, one_value_each(LIBRUN_UINT8, 100, {250}), LIBRUN_UINT8, LIBRUN_PROD) ==
          "");
    for (const double value : {2147483647.0, -2147483648.0})
      for (const librun_op_t op : kAllOps)
        CHECK(difference(comm, one_value_each(LIBRUN_INT32, 100, {value}), LIBRUN_INT32, op) == "");
  });
}
