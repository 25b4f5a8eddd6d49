// SPDX-License-Identifier: Apache-2.0
// Arguments that are wrong on one rank, on all, or differ between ranks.
#include <algorithm>

#include "support/guarded_buffer.hpp"
#include "support/job.hpp"

using namespace librun_test;

namespace {

constexpr librun_algo_t kAlgos[] = {LIBRUN_ALGO_AUTO, LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT,
                                    LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED};

struct Arguments {
  const void* send;
  void* recv;
  std::size_t count;
  librun_dtype_t dtype = LIBRUN_FLOAT32;
  librun_op_t op = LIBRUN_SUM;
};

librun_status_t call(librun::Communicator& comm, const Arguments& arguments) {
  return all_reduce_and_wait(comm.get(), arguments.send, arguments.recv, arguments.count,
                             arguments.dtype, arguments.op);
}

/// Makes the call go wrong on `culprit`, or on all ranks when it is below 0, and checks that all
/// ranks are told, nothing is written, and a correct call works afterwards.
template <class Spoil>
void check_refused(const std::string& word, Spoil&& spoil) {
  for (const librun_algo_t algo : kAlgos) {
    for (const int culprit : {world() - 1, -1}) {
      INFO(librun_algo_name(algo) << ", " << word << ", on rank " << culprit);
      librun::Communicator comm = create(config_of(algo));
      GuardedBuffer send(4096, 0);
      GuardedBuffer recv(4096, 0);
      const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, 1024, rank(), 1);
      send.assign(input);
      Arguments arguments{send.data(), recv.data(), 1000};
      if (culprit < 0 || culprit == rank()) spoil(arguments);
      CHECK_STATUS(call(comm, arguments), LIBRUN_INVALID_ARGUMENT);
      INFO(last_error());
      CHECK(contains(last_error(), word));
      // Where launches do not wait, a rank that refuses itself is told so at once.
      const bool by_itself = culprit < 0 && on_cuda() && algo != LIBRUN_ALGO_STEPPED;
      const int named = by_itself ? rank() : std::max(culprit, 0);
      CHECK(contains(last_error(), "rank " + std::to_string(named)));
      CHECK(recv.untouched());
      CHECK(recv.guards_intact());
      CHECK(send.holds(input));
      CHECK(comm.state() == LIBRUN_ACTIVE);
      CHECK(sum_difference(comm, 2) == "");
      CHECK_OK(librun_comm_close(comm.get()));
    }
  }
}

/// Ranks pass different things: all get the table, nobody's memory is written.
template <class Differ>
void check_mismatch(const std::vector<std::string>& words, Differ&& differ) {
  if (world() == 1) return;  // one rank agrees with itself
  for (const librun_algo_t algo : kAlgos) {
    INFO(librun_algo_name(algo));
    librun::Communicator comm = create(config_of(algo));
    DeviceVector<float> send(409600, 1);
    DeviceVector<float> recv(send.size(), 77);
    Arguments arguments{send.data(), recv.data(), 1000};
    differ(arguments);
    CHECK_STATUS(call(comm, arguments), LIBRUN_INVALID_ARGUMENT);
    const std::string text = last_error();
    INFO(text);
    for (const std::string& word : words) CHECK(contains(text, word));
    for (int r = 0; r < world(); ++r) CHECK(contains(text, "rank " + std::to_string(r) + ":"));
    CHECK(recv == DeviceVector<float>(send.size(), 77));
    CHECK(comm.state() == LIBRUN_ACTIVE);
    CHECK(sum_difference(comm, 3) == "");
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

}  // namespace

TEST_CASE("null pointers") {
  check_refused("null", [](Arguments& arguments) { arguments.send = nullptr; });
  check_refused("null", [](Arguments& arguments) { arguments.recv = nullptr; });
}

TEST_CASE("B28 pointers that are not aligned to their type") {
  check_refused("aligned", [](Arguments& arguments) {
    arguments.send = static_cast<const std::byte*>(arguments.send) + 2;
    arguments.count = 100;
  });
  check_refused("aligned", [](Arguments& arguments) {
    arguments.recv = static_cast<std::byte*>(arguments.recv) + 1;
    arguments.count = 100;
  });
}

TEST_CASE("B44 buffers that overlap in part") {
  for (const std::size_t shift : {4, 2000})
    check_refused("overlap", [shift](Arguments& arguments) {
      arguments.recv =
          const_cast<std::byte*>(static_cast<const std::byte*>(arguments.send)) + shift;
      arguments.count = 510;
    });
}

TEST_CASE("B43 impossible counts") {
  for (const std::size_t count : {LIBRUN_MAX_COUNT + 1, std::size_t{1} << 62, ~std::size_t{0}})
    check_refused("count", [count](Arguments& arguments) { arguments.count = count; });
}

TEST_CASE("types and operations that do not exist") {
  check_refused("type", [](Arguments& arguments) {
    arguments.dtype = static_cast<librun_dtype_t>(LIBRUN_DTYPE_COUNT);
  });
  check_refused("type",
                [](Arguments& arguments) { arguments.dtype = static_cast<librun_dtype_t>(15); });
  check_refused("operation", [](Arguments& arguments) {
    arguments.op = static_cast<librun_op_t>(LIBRUN_OP_COUNT);
  });
}

TEST_CASE("B17 count differs") {
  check_mismatch({"409600", "409598"},
                 [](Arguments& arguments) { arguments.count = rank() == 1 ? 409600 : 409598; });
  check_mismatch({"1000", "0"}, [](Arguments& arguments) {
    if (rank() == 0) arguments.count = 0;
  });
}

TEST_CASE("B17 sizes of different algorithms") {
  check_mismatch({"100000", "16"},
                 [](Arguments& arguments) { arguments.count = rank() == 0 ? 16 : 100000; });
}

TEST_CASE("B17 type differs") {
  check_mismatch({"float16", "bfloat16"}, [](Arguments& arguments) {
    arguments.dtype = rank() == 1 ? LIBRUN_FLOAT16 : LIBRUN_BFLOAT16;
  });
  check_mismatch({"float32", "int32"}, [](Arguments& arguments) {
    arguments.dtype = rank() == 1 ? LIBRUN_FLOAT32 : LIBRUN_INT32;
  });
}

TEST_CASE("B17 operation differs") {
  check_mismatch({"max", "sum"}, [](Arguments& arguments) {
    arguments.op = rank() == world() - 1 ? LIBRUN_MAX : LIBRUN_SUM;
  });
}

TEST_CASE("B17 one rank skipped a call of another size") {
  if (world() == 1) return;
  librun::Communicator comm = create();
  DeviceVector<float> data(5000, 1);
  if (rank() != 0)
    CHECK_STATUS(call(comm, {data.data(), data.data(), 100}), LIBRUN_INVALID_ARGUMENT);
  else
    CHECK_STATUS(call(comm, {data.data(), data.data(), 5000}), LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), "5000"));
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B17 in place on one rank only is legal") {
  librun::Communicator comm = create();
  DeviceVector<std::int32_t> send(3000, rank() + 1);
  DeviceVector<std::int32_t> recv(3000);
  std::int32_t* out = rank() == world() - 1 ? send.data() : recv.data();
  CHECK_OK(all_reduce_and_wait(comm.get(), send.data(), out, 3000, LIBRUN_INT32, LIBRUN_SUM));
  CHECK(std::count(out, out + 3000, world() * (world() + 1) / 2) == 3000);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("register refuses what is wrong or differs") {
  librun::Communicator comm = create();
  DeviceVector<float> data(1000);
  librun_buffer_t buffer{};
  CHECK_STATUS(librun_register(comm.get(), nullptr, 100, &buffer), LIBRUN_INVALID_ARGUMENT);
  CHECK_STATUS(librun_register(comm.get(), data.data(), 0, &buffer), LIBRUN_INVALID_ARGUMENT);
  if (world() > 1) {
    const std::size_t size_bytes = rank() == 0 ? 4000 : 3996;
    CHECK_STATUS(librun_register(comm.get(), data.data(), size_bytes, &buffer),
                 LIBRUN_INVALID_ARGUMENT);
    CHECK(contains(last_error(), "3996"));
  }
  CHECK_STATUS(librun_unregister(comm.get(), nullptr), LIBRUN_INVALID_ARGUMENT);
  CHECK(comm.stats().registered_buffers == 0);
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("create refuses settings that are bad or differ, on all ranks") {
  librun_comm_t handle{};
  librun::Config config;
  if (rank() == world() - 1) config.arena_bytes = 5;
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, &config, &handle), LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), "arena_bytes"));

  config = librun::Config();
  config.algo = static_cast<librun_algo_t>(LIBRUN_ALGO_COUNT);
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, &config, &handle), LIBRUN_INVALID_ARGUMENT);

  config = librun::Config();
  config.timeout_ms = -5;
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, &config, &handle), LIBRUN_INVALID_ARGUMENT);

  if (world() > 1) {
    config = librun::Config();
    config.arena_bytes = rank() == 0 ? 4 << 20 : 8 << 20;
    CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, &config, &handle), LIBRUN_INVALID_ARGUMENT);
    CHECK(contains(last_error(), "8388608"));
  }
  CHECK(handle == nullptr);
}

TEST_CASE("create names a bad variable, its value and what it takes") {
  struct Row {
    const char* name;
    const char* value;
    const char* accepted;
  };
  const Row rows[] = {
      {"LIBRUN_ALGO", "fastest", "two_shot"}, {"LIBRUN_TIMEOUT_MS", "soon", "ms"},
      {"LIBRUN_TIMEOUT_MS", "-1", "ms"},      {"LIBRUN_ARENA_BYTES", "12Q", "bytes"},
      {"LIBRUN_ARENA_BYTES", "1K", "64K"},    {"LIBRUN_DEVICE", "tpu", "host"},
      {"LIBRUN_CHECK", "yes", "0|1"},         {"LIBRUN_FAULT", "nonsense", "<point>@<rank>"}};
  for (const Row& row : rows) {
    INFO(row.name << "=" << row.value);
    const ScopedEnv env{{row.name, row.value}};
    librun_comm_t handle{};
    CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, nullptr, &handle), LIBRUN_INVALID_ARGUMENT);
    INFO(last_error());
    CHECK(contains(last_error(), row.name));
    CHECK(contains(last_error(), row.value));
    CHECK(contains(last_error(), row.accepted));
  }
  librun::Communicator comm = create();
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("stepped tells all ranks of a bad argument of one, with LIBRUN_CHECK off too") {
  const ScopedEnv env{{"LIBRUN_CHECK", "0"}};
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_STEPPED));
  DeviceVector<float> send(1000, 1);
  DeviceVector<float> recv(1000, 77);
  const bool culprit = rank() == world() - 1;
  CHECK_STATUS(call(comm, {culprit ? nullptr : send.data(), recv.data(), send.size()}),
               LIBRUN_INVALID_ARGUMENT);
  CHECK(recv == DeviceVector<float>(1000, 77));
  CHECK(comm.state() == LIBRUN_ACTIVE);
  CHECK(sum_difference(comm, 4) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("create on all ranks fails when one has nowhere to put the handle, or no valid config") {
  librun_comm_t handle{};
  const bool culprit = rank() == world() - 1;
  const std::string name = "rank " + std::to_string(world() - 1);
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, nullptr, culprit ? nullptr : &handle),
               LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), name));
  CHECK(contains(last_error(), "out is null"));

  librun_config_t config = librun::Config{};
  if (culprit) config.struct_size = 1;
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, &config, &handle), LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), name));
  CHECK(contains(last_error(), "struct_size"));
  CHECK(handle == nullptr);
}
