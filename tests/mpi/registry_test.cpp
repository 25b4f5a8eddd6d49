// SPDX-License-Identifier: Apache-2.0
// Registered buffers and the zero_copy path.
#include "support/reduction_case.hpp"

using namespace librun_test;

namespace {

/// Sums pattern `k` from `send` into `recv`, both inside of someone's memory.
std::string sum_in(librun_comm_t comm, std::byte* send, std::byte* recv, std::size_t count,
                   std::uint64_t k) {
  const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, count, rank(), k);
  copy_to_device(send, input.data(), input.size());
  const librun_status_t status =
      all_reduce_and_wait(comm, send, recv, count, LIBRUN_FLOAT32, LIBRUN_SUM);
  if (status != LIBRUN_OK) return last_error();
  Bytes result(input.size());
  copy_from_device(result.data(), recv, result.size());
  return first_difference(
      LIBRUN_FLOAT32, result.data(),
      expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, count, world(), k));
}

std::byte* allocate(librun::Communicator& comm, std::size_t size_bytes) {
  return static_cast<std::byte*>(comm.allocate(size_bytes));
}

std::uint64_t peers() { return static_cast<std::uint64_t>(world() - 1); }

}  // namespace

TEST_CASE("zero_copy through registered memory, with a suspend in between") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  {
    const RegisteredMemory memory(comm.get(), 1 << 20);
    CHECK(comm.stats().registered_buffers == 1);
    CHECK(comm.stats().staged_slots == 0);
    CHECK(comm.stats().open_mappings == 2 * peers());
    ReductionCase test;
    for (test.k = 0; test.k < 12; ++test.k) {
      test.count = 1 + test.k * 5003;
      test.place = static_cast<Place>(test.k % 3);
      test.shift = static_cast<int>(test.k);
      INFO(describe(test));
      CHECK(run_case(comm.get(), test, &memory) == "");
      if (test.k % 4 != 3) continue;
      CHECK(comm.suspend());
      CHECK(comm.stats().open_mappings == 0);
      CHECK(comm.resume());
      CHECK(comm.stats().open_mappings == 2 * peers());
    }
  }
  CHECK(comm.stats().registered_buffers == 0);
  CHECK(comm.stats().open_mappings == peers());
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B18 two slices of one allocation, one of them twice, and a second communicator") {
  librun::Communicator first = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  librun::Communicator second = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  constexpr std::size_t kSliceBytes = 64 << 10;
  constexpr std::size_t kCount = kSliceBytes / 8;  // the lower half sends, the upper receives
  std::byte* memory = allocate(first, 1 << 20);
  std::byte* x = memory + 4096 * static_cast<std::size_t>(rank() + 1);
  std::byte* y = x + kSliceBytes;
  const auto sum_x = [&](librun::Communicator& comm, std::uint64_t k) {
    return sum_in(comm.get(), x, x + kSliceBytes / 2, kCount, k);
  };
  const auto sum_y = [&](std::uint64_t k) {
    return sum_in(first.get(), y, y + kSliceBytes / 2, kCount, k);
  };

  const librun_buffer_t x1 = first.register_buffer(x, kSliceBytes);
  const librun_buffer_t y1 = first.register_buffer(y, kSliceBytes);
  const librun_buffer_t x2 = first.register_buffer(x, kSliceBytes);
  const librun_buffer_t x_in_second = second.register_buffer(x, kSliceBytes);
  CHECK(first.stats().registered_buffers == 3);
  // One mapping for each peer's allocation, however often it is registered, and one for its arena.
  CHECK(first.stats().open_mappings == 2 * peers());
  CHECK(sum_x(first, 1) == "");
  CHECK(sum_y(2) == "");
  CHECK(sum_x(second, 3) == "");

  first.unregister_buffer(x1);
  CHECK(sum_x(first, 4) == "");
  CHECK(sum_y(5) == "");
  second.unregister_buffer(x_in_second);
  CHECK_OK(librun_comm_close(second.get()));
  CHECK(sum_x(first, 6) == "");
  CHECK_STATUS(librun_free(first.get(), memory), LIBRUN_REJECTED);
  CHECK(contains(last_error(), "unregister"));

  first.unregister_buffer(x2);
  first.unregister_buffer(y1);
  CHECK(first.stats().open_mappings == peers());
  CHECK_STATUS(librun_unregister(first.get(), x2), LIBRUN_INVALID_ARGUMENT);
  CHECK(first.state() == LIBRUN_ACTIVE);
  CHECK_OK(librun_free(first.get(), memory));
  CHECK_OK(librun_comm_close(first.get()));
}

TEST_CASE("memory of one communicator is registered with another") {
  librun::Communicator owner = create();
  librun::Communicator user = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  std::byte* memory = allocate(owner, 1 << 16);
  const librun_buffer_t buffer = user.register_buffer(memory, 1 << 16);
  CHECK(user.stats().staged_slots == 0);
  CHECK(sum_in(user.get(), memory, memory + (1 << 15), 1000, 1) == "");
  user.unregister_buffer(buffer);
  CHECK_OK(librun_free(owner.get(), memory));
  CHECK_OK(librun_comm_close(user.get()));
  CHECK_OK(librun_comm_close(owner.get()));
}

TEST_CASE("other memory is accepted and staged, also when only one rank has it") {
  for (const bool everywhere : {true, false}) {
    INFO((everywhere ? "all ranks" : "the last rank"));
    librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
    constexpr std::size_t kBytes = 1 << 17;
    DeviceBytes plain(kBytes);
    std::byte* ours = allocate(comm, kBytes);
    std::byte* memory = everywhere || rank() == world() - 1 ? plain.data() : ours;
    const librun_buffer_t buffer = comm.register_buffer(memory, kBytes);
    CHECK(comm.stats().staged_slots == 1);
    CHECK(sum_in(comm.get(), memory, memory + kBytes / 2, kBytes / 8, 1) == "");
    CHECK(comm.suspend());
    CHECK(comm.resume());
    CHECK(sum_in(comm.get(), memory, memory + kBytes / 2, kBytes / 8, 2) == "");
    comm.unregister_buffer(buffer);
    CHECK_OK(librun_free(comm.get(), ours));
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("zero_copy that is forced on memory that is not registered") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  DeviceValue<float> value(1);
  DeviceValue<float> sum(0);
  CHECK_STATUS(all_reduce_and_wait(comm.get(), value.at(), sum.at(), 1, LIBRUN_FLOAT32, LIBRUN_SUM),
               LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), "register"));
  CHECK(*sum == 0);
  CHECK(comm.state() == LIBRUN_ACTIVE);
  {
    const RegisteredMemory memory(comm.get(), 4096);
    CHECK(sum_in(comm.get(), memory.data(), memory.data() + 2048, 100, 1) == "");
  }
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B37 unregister and free while suspended") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  std::byte* x = allocate(comm, 8192);
  std::byte* y = allocate(comm, 8192);
  const librun_buffer_t bx = comm.register_buffer(x, 8192);
  const librun_buffer_t by = comm.register_buffer(y, 8192);
  CHECK(comm.suspend());
  CHECK_STATUS(librun_free(comm.get(), x), LIBRUN_REJECTED);
  CHECK_OK(librun_unregister(comm.get(), bx));
  CHECK_OK(librun_free(comm.get(), x));
  CHECK(comm.resume());
  CHECK(comm.stats().registered_buffers == 1);
  CHECK(sum_in(comm.get(), y, y + 4096, 1024, 1) == "");
  CHECK_OK(librun_unregister(comm.get(), by));
  CHECK_OK(librun_free(comm.get(), y));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("unregistered by one rank alone while suspended: resume finds it") {
  if (world() == 1) return;
  librun::Communicator comm = create();
  std::byte* memory = allocate(comm, 4096);
  const librun_buffer_t buffer = comm.register_buffer(memory, 4096);
  CHECK(comm.suspend());
  if (rank() == 1) CHECK_OK(librun_unregister(comm.get(), buffer));
  const librun_status_t status = librun_resume(comm.get(), -1);
  INFO(last_error());
  CHECK(status != LIBRUN_OK);
  CHECK(status != LIBRUN_ALREADY_THERE);
  CHECK(contains(last_error(), "rank 1"));
  CHECK(same_on_all_ranks(static_cast<std::uint64_t>(status)));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a graph over registered memory replays after resume and after unregister") {
  librun::Communicator comm = create();
  constexpr std::size_t kCount = 20000;
  std::byte* memory = allocate(comm, kCount * 8);
  const librun_buffer_t buffer = comm.register_buffer(memory, kCount * 8);
  const Stream stream;
  comm.begin_graph(stream.get());
  comm.all_reduce(memory, memory + kCount * 4, kCount, LIBRUN_FLOAT32, LIBRUN_SUM, stream.get());
  librun::Graph graph = comm.end_graph(stream.get());
  const auto replay = [&](std::uint64_t k) {
    const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, kCount, rank(), k);
    copy_to_device(memory, input.data(), input.size());
    launch_and_wait(comm, graph, stream.get());
    Bytes result(input.size());
    copy_from_device(result.data(), memory + kCount * 4, result.size());
    return first_difference(
        LIBRUN_FLOAT32, result.data(),
        expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, kCount, world(), k));
  };
  CHECK(replay(1) == "");
  CHECK(comm.suspend());
  CHECK(comm.resume());
  CHECK(replay(2) == "");
  comm.unregister_buffer(buffer);
  CHECK(replay(3) == "");
  CHECK_OK(librun_free(comm.get(), memory));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a graph whose buffer was unregistered keeps off the buffer that has its slot now") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  constexpr std::size_t kCount = 20000;
  constexpr std::size_t kBytes = kCount * 8;
  std::byte* first = allocate(comm, kBytes);
  std::byte* second = allocate(comm, kBytes);
  const librun_buffer_t of_first = comm.register_buffer(first, kBytes);
  const Stream stream;
  comm.begin_graph(stream.get());
  comm.all_reduce(first, first + kCount * 4, kCount, LIBRUN_FLOAT32, LIBRUN_SUM, stream.get());
  librun::Graph graph = comm.end_graph(stream.get());
  comm.unregister_buffer(of_first);
  const librun_buffer_t of_second = comm.register_buffer(second, kBytes);

  const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, kCount, rank(), 5);
  const Bytes other(kBytes, std::byte{0x11});
  copy_to_device(first, input.data(), input.size());
  copy_to_device(second, other.data(), other.size());
  barrier();
  launch_and_wait(comm, graph, stream.get());
  barrier();
  Bytes result(kBytes);
  copy_from_device(result.data(), first + kCount * 4, input.size());
  CHECK(first_difference(
            LIBRUN_FLOAT32, result.data(),
            expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, kCount, world(), 5)) == "");
  copy_from_device(result.data(), second, kBytes);
  CHECK(result == other);
  comm.unregister_buffer(of_second);
  CHECK_OK(librun_free(comm.get(), first));
  CHECK_OK(librun_free(comm.get(), second));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("two buffers of one allocation: after a resume either may go first") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  constexpr std::size_t kSliceBytes = 64 << 10;
  std::byte* memory = allocate(comm, 2 * kSliceBytes);
  const librun_buffer_t first = comm.register_buffer(memory, kSliceBytes);
  const librun_buffer_t second = comm.register_buffer(memory + kSliceBytes, kSliceBytes);
  CHECK(comm.suspend());
  CHECK(comm.resume());
  comm.unregister_buffer(first);
  CHECK(comm.stats().open_mappings == 2 * peers());
  std::byte* send = memory + kSliceBytes;
  CHECK(sum_in(comm.get(), send, send + kSliceBytes / 2, kSliceBytes / 8, 7) == "");
  comm.unregister_buffer(second);
  CHECK(comm.stats().open_mappings == peers());
  CHECK_OK(librun_free(comm.get(), memory));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("slots are returned, and a full table says so") {
  librun::Communicator comm = create();
  std::byte* memory = allocate(comm, 4096);
  for (int round = 0; round < 400; ++round)
    comm.unregister_buffer(comm.register_buffer(memory, 4096));
  CHECK(comm.stats().slots_used == 0);

  std::vector<librun_buffer_t> buffers;
  for (int i = 0; i < LIBRUN_MAX_BUFFERS; ++i)
    buffers.push_back(comm.register_buffer(memory, 4096));
  CHECK(comm.stats().slots_used == comm.stats().slots_total);
  librun_buffer_t one_more{};
  CHECK_STATUS(librun_register(comm.get(), memory, 4096, &one_more), LIBRUN_UNSUPPORTED);
  CHECK(contains(last_error(), std::to_string(LIBRUN_MAX_BUFFERS)));
  CHECK(sum_difference(comm, 1) == "");
  for (const librun_buffer_t buffer : buffers) comm.unregister_buffer(buffer);
  CHECK_OK(librun_free(comm.get(), memory));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("a handle of another communicator is refused, and both buffers stay") {
  librun::Communicator first = create();
  librun::Communicator second = create();
  DeviceVector<float> data(1000);
  librun_buffer_t of_first{};
  librun_buffer_t of_second{};
  const std::size_t size_bytes = data.size() * sizeof(float);
  CHECK_OK(librun_register(first.get(), data.data(), size_bytes, &of_first));
  CHECK_OK(librun_register(second.get(), data.data(), size_bytes, &of_second));
  CHECK_STATUS(librun_unregister(first.get(), of_second), LIBRUN_INVALID_ARGUMENT);
  CHECK(first.stats().registered_buffers == 1);
  CHECK(second.stats().registered_buffers == 1);
  CHECK_OK(librun_unregister(first.get(), of_first));
  CHECK_OK(librun_unregister(second.get(), of_second));
  CHECK_OK(librun_comm_close(first.get()));
  CHECK_OK(librun_comm_close(second.get()));
}
