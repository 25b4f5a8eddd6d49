// SPDX-License-Identifier: Apache-2.0
// What goes wrong elsewhere, as far as no other test shows it: see docs/reliability.md.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <thread>

#include "support/guarded_buffer.hpp"
#include "support/job.hpp"
#include "support/proc_self.hpp"
#include "support/recorded_sum.hpp"
#include "support/wait_for.hpp"

using namespace librun_test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kOdd = 1;

/// A capture of one sum per element of `counts`, all on the same memory. @return null: refused
librun_graph_t record(librun::Communicator& comm, const Stream& stream, DeviceVector<float>& data,
                      std::initializer_list<std::size_t> counts) {
  CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
  for (const std::size_t count : counts)
    CHECK_OK(librun_all_reduce(comm.get(), data.data(), data.data(), count, LIBRUN_FLOAT32,
                               LIBRUN_SUM, stream.get()));
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  return graph;
}

/// One sum in `memory`, which the host can write. "" when it is right.
std::string sum_in(librun::Communicator& comm, void* memory, std::size_t count, std::uint64_t k) {
  const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, count, rank(), k);
  std::copy(input.begin(), input.end(), static_cast<std::byte*>(memory));
  const librun_status_t status =
      all_reduce_and_wait(comm.get(), memory, memory, count, LIBRUN_FLOAT32, LIBRUN_SUM);
  if (status != LIBRUN_OK) return last_error();
  return first_difference(
      LIBRUN_FLOAT32, static_cast<std::byte*>(memory),
      expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, count, world(), k));
}

/// Waits for a child. @return its exit code, -1 when a signal ended it
int exit_code_of(pid_t child) {
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("B01 every kind of the host's memory, on all ranks or on one") {
  if (on_cuda()) return;  // a GPU's kinds: cuda_test
  constexpr std::size_t kCount = 4096;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  librun::Communicator comm = create();
  alignas(64) static std::byte static_memory[kBytes];
  alignas(64) std::byte stack_memory[kBytes];
  const std::unique_ptr<std::byte[]> heap(new std::byte[kBytes + 64]);
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const shared =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* const own = comm.allocate(2 * kBytes);
  std::uint64_t k = 0;
  for (void* const kind : {static_cast<void*>(static_memory), static_cast<void*>(stack_memory),
                           static_cast<void*>(heap.get() + 4), mapped, shared, own,
                           static_cast<void*>(static_cast<std::byte*>(own) + 1024)})
    for (const bool all : {true, false}) {
      INFO("kind " << k / 2 << ", all ranks " << all);
      void* const memory = all || rank() == kOdd ? kind : own;
      librun_buffer_t buffer{};
      CHECK_OK(librun_register(comm.get(), memory, kBytes, &buffer));
      CHECK(sum_in(comm, memory, kCount, ++k) == "");
      CHECK_OK(librun_unregister(comm.get(), buffer));
      CHECK(sum_difference(comm, k) == "");
    }
  ::munmap(mapped, kBytes);
  ::munmap(shared, kBytes);
  comm.close();
}

TEST_CASE("B06 a rank that never resumes is named by the others, at the deadline") {
  if (world() == 1) return;  // nobody to wait for
  librun::Communicator comm = create();
  CHECK(comm.suspend());
  const auto start = Clock::now();
  if (rank() != kOdd) {
    CHECK_STATUS(librun_resume(comm.get(), 700), LIBRUN_TIMEOUT);
    CHECK(contains(last_error(), "rank 1"));
    CHECK(Clock::now() - start < std::chrono::milliseconds(2700));
    CHECK_STATUS(librun_resume(comm.get(), -1), LIBRUN_FAILED);
  }
  barrier();
  // The first call of the rank that stayed away finds out what the others made of it.
  const librun_status_t closed = librun_comm_close(comm.get());
  if (rank() != kOdd) CHECK(closed == LIBRUN_OK);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B10 graphs of equal length whose second calls differ in size are told, and go on") {
  if (world() == 1) return;  // one rank agrees with itself
  librun::Communicator comm = create();
  const Stream stream;
  DeviceVector<float> data(100, 1);
  const bool odd = rank() == world() - 1;
  librun_graph_t graph = record(comm, stream, data, {100, odd ? std::size_t{99} : 100, 100});
  const librun_status_t status = launch_and_wait(comm.get(), graph, stream.get());
  INFO(last_error());
  CHECK(status == LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), "different calls"));
  CHECK(comm.state() == LIBRUN_ACTIVE);
  CHECK_OK(librun_graph_destroy(graph));
  barrier();
  CHECK(sum_difference(comm, 2) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B10 one buffer for three calls on one rank, three buffers on the others") {
  librun::Communicator comm = create();
  const Stream stream;
  std::list<DeviceVector<float>> buffers;
  const bool odd = rank() == world() - 1;
  for (int i = 0; i < (odd ? 1 : 3); ++i) buffers.emplace_back(100, 0.0f);
  DeviceVector<float> sums(100, 0);
  comm.begin_graph(stream.get());
  for (int call = 0; call < 3; ++call) {
    DeviceVector<float>& input = odd ? buffers.front() : *std::next(buffers.begin(), call);
    comm.all_reduce(input.data(), sums.data(), 100, LIBRUN_SUM, stream.get());
  }
  librun::Graph graph = comm.end_graph(stream.get());
  for (int replay = 1; replay <= 5; ++replay) {
    for (auto& buffer : buffers)
      std::fill(buffer.begin(), buffer.end(), static_cast<float>(replay));
    launch_and_wait(comm, graph, stream.get());
    CHECK(std::count(sums.begin(), sums.end(), static_cast<float>(replay * world())) == 100);
  }
  comm.close();
}

TEST_CASE("B12 two graphs of one communicator on two streams") {
  librun::Communicator comm = create();
  {
    RecordedSum first(comm, 5000, false);
    RecordedSum second(comm, 300, true);
    for (std::uint64_t k = 0; k < 100; ++k) {
      CHECK(first.replay(k) == "");
      CHECK(second.replay(k) == "");
    }
  }
  comm.close();
}

TEST_CASE("B12 one thread reduces while another registers and unregisters") {
  librun::Communicator comm = create();
  void* const memory = comm.allocate(1 << 16);
  std::string difference;
  // Registration is collective: the ranks take turns between the two threads in the same way.
  for (std::uint64_t round = 0; round < 50 && difference.empty(); ++round) {
    librun_buffer_t buffer{};
    std::thread other([&] { CHECK_OK(librun_register(comm.get(), memory, 1 << 16, &buffer)); });
    other.join();
    std::thread reducer([&] { difference = sum_difference(comm, round); });
    std::this_thread::yield();
    CHECK_OK(librun_check(comm.get()));
    static_cast<void>(comm.stats());
    static_cast<void>(comm.mappings());
    reducer.join();
    CHECK_OK(librun_unregister(comm.get(), buffer));
  }
  CHECK(difference == "");
  comm.close();
}

TEST_CASE("B17 without checks, counts that differ touch nothing outside and hold nobody up") {
  if (world() == 1) return;  // one rank agrees with itself
  const ScopedEnv env{{"LIBRUN_CHECK", "0"}, {"LIBRUN_CALL_TIMEOUT_MS", "800"}};
  for (const std::size_t count : {std::size_t{16}, std::size_t{3000}, std::size_t{400000}}) {
    INFO(count << " elements, one rank half of them");
    librun::Communicator comm = create();
    const std::size_t mine = rank() == kOdd ? count / 2 : count;
    GuardedBuffer send(mine * 4, 0);
    GuardedBuffer recv(mine * 4, 0);
    const auto start = Clock::now();
    static_cast<void>(all_reduce_and_wait(comm.get(), send.data(), recv.data(), mine,
                                          LIBRUN_FLOAT32, LIBRUN_SUM));
    CHECK(Clock::now() - start < std::chrono::milliseconds(4000));
    CHECK(send.untouched());
    CHECK(send.guards_intact());
    CHECK(recv.guards_intact());
    barrier();
    static_cast<void>(librun_comm_close(comm.get()));  // may be where a rank hears of it
    CHECK_OK(librun_comm_close(comm.get()));
  }
  librun::Communicator next = create();
  CHECK(sum_difference(next, 1) == "");
  next.close();
}

TEST_CASE("B22 hundreds of calls larger than the arena, with ever new buffers, leave nothing") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_AUTO, 64 << 10));
  constexpr std::size_t kCount = 40000;
  const auto calls = [&](std::uint64_t n) {
    for (std::uint64_t k = 0; k < n; ++k) CHECK(sum_difference(comm, k, kCount) == "");
  };
  calls(20);
  const ProcessHoldings before = process_holdings();
  const std::uint64_t mappings = comm.stats().open_mappings;
  calls(300);
  if (!on_cuda()) CHECK(process_holdings() == before);
  CHECK(comm.stats().open_mappings == mappings);
  CHECK(comm.stats().slots_used == 0);
  comm.close();
}

TEST_CASE("B35 nobody frees before all have unmapped, with one rank late to the close") {
  for (int round = 0; round < 12; ++round) {
    const int late = round % world();
    const ScopedEnv env{
        {"LIBRUN_FAULT", "close_before_agree@" + std::to_string(late) + ":delay=60"}};
    librun::Communicator comm = create();
    void* const memory = comm.allocate(1 << 20);
    const librun_buffer_t buffer = comm.register_buffer(memory, 1 << 20);
    static_cast<void>(buffer);
    CHECK(sum_difference(comm, static_cast<std::uint64_t>(round)) == "");
    CHECK_OK(librun_comm_close(comm.get()));
    // What is freed now belongs to others at once.
    DeviceVector<float> others(1 << 18, -1);
    CHECK(std::count(others.begin(), others.end(), -1.0f) == 1 << 18);
  }
}

TEST_CASE("B37 a hundred and fifty cycles leave the heap as it was") {
  librun::Communicator comm = create();
  const auto cycles = [&](std::uint64_t n) {
    for (std::uint64_t k = 0; k < n; ++k) {
      CHECK(comm.suspend());
      CHECK(comm.resume());
      if (k % 50 == 0) CHECK(sum_difference(comm, k) == "");
    }
  };
  cycles(30);
  // MPI keeps more buffers now and then, 60 KB at once on a busy machine, and then no more; 256
  // bytes of each cycle would be lost in every round.
  constexpr std::size_t kLimitBytes = 37500;
  std::vector<std::size_t> grown;
  std::uint64_t leaks = 1;
  for (int round = 0; leaks != 0 && round < 6; ++round) {
    const std::size_t before = ::mallinfo2().uordblks;
    cycles(150);
    const std::size_t after = ::mallinfo2().uordblks;
    grown.push_back(after > before ? after - before : 0);
    const std::uint64_t mine = grown.back() >= kLimitBytes;
    MPI_Allreduce(&mine, &leaks, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  }
  INFO("bytes that 150 cycles left in use, by round: "
       << Catch::StringMaker<std::vector<std::size_t>>::convert(grown));
  CHECK(leaks == 0);
  comm.close();
}

TEST_CASE("B51 a program that is started between calls, by system and by fork and exec") {
  librun::Communicator comm = create();
  for (std::uint64_t k = 0; k < 40; ++k) {
    if (k % 10 == 3) CHECK(::system("true") == 0);
    CHECK(sum_difference(comm, k) == "");
  }
  // No link and no memory of ours reaches the new program.
  const char* const search =
      "ls -l /proc/self/fd | grep -c -e memfd:librun -e 'anon_inode:\\[eventfd\\]' | grep -qx 0";
  if (!on_cuda()) {  // whose driver opens what it likes
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", search, nullptr);
      ::_exit(99);
    }
    CHECK(exit_code_of(child) == 0);
  }
  CHECK(sum_difference(comm, 100) == "");
  comm.close();
}

TEST_CASE("B51 a child that lives longer keeps nobody from closing, and holds no link") {
  librun::Communicator comm = create();
  int hold[2];
  REQUIRE(::pipe(hold) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(hold[1]);
    char none = 0;
    static_cast<void>(!::read(hold[0], &none, 1));  // until the parent has closed
    ::_exit(0);
  }
  ::close(hold[0]);
  CHECK(sum_difference(comm, 1) == "");
  CHECK(comm.suspend());
  CHECK(comm.resume());
  CHECK(sum_difference(comm, 2) == "");
  CHECK_OK(librun_comm_close(comm.get()));
  librun::Communicator next = create();
  CHECK(sum_difference(next, 3) == "");
  next.close();
  ::close(hold[1]);
  CHECK(exit_code_of(child) == 0);
}

TEST_CASE("B43 more than 2^31 elements", "[.][big]") {
  if (on_cuda()) return;  // the host could not look at so much of a GPU's memory
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 5;
  constexpr std::size_t kWindow = 4096;
  constexpr std::size_t kStarts[] = {0, (std::size_t{1} << 30) - kWindow / 2, kCount - kWindow};
  librun::Communicator comm = create();
  void* const memory = ::mmap(nullptr, kCount, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const data = static_cast<std::uint8_t*>(memory);
  const auto value = [](std::size_t i, int of_rank) {
    return static_cast<std::uint8_t>((i % 251 + 1) * static_cast<std::size_t>(of_rank + 1));
  };
  for (const std::size_t start : kStarts)
    for (std::size_t i = start; i < start + kWindow; ++i) data[i] = value(i, rank());
  CHECK_OK(all_reduce_and_wait(comm.get(), data, data, kCount, LIBRUN_UINT8, LIBRUN_SUM));
  std::size_t wrong = 0;
  for (const std::size_t start : kStarts)
    for (std::size_t i = start; i < start + kWindow; ++i) {
      std::uint8_t sum = 0;
      for (int r = 0; r < world(); ++r) sum = static_cast<std::uint8_t>(sum + value(i, r));
      wrong += data[i] != sum;
    }
  CHECK(wrong == 0);
  CHECK(data[kCount / 3] == 0);
  ::munmap(memory, kCount);
  comm.close();
}
