// SPDX-License-Identifier: Apache-2.0
// What only a GPU has: captures of a stream by CUDA's own calls, several streams, device memory.
#include <cuda_runtime_api.h>

#include <chrono>

#include "support/ballast.hpp"
#include "support/guarded_buffer.hpp"
#include "support/job.hpp"

using namespace librun_test;

namespace {

#define CHECK_CUDA(call)                      \
  do {                                        \
    const cudaError_t error_of_call = (call); \
    INFO(cudaGetErrorString(error_of_call));  \
    CHECK(error_of_call == cudaSuccess);      \
  } while (false)

cudaStream_t cuda_stream(const Stream& stream) { return static_cast<cudaStream_t>(stream.get()); }

/// One sum that was captured with cudaStreamBeginCapture.
class NativeGraph {
 public:
  NativeGraph(librun::Communicator& comm, std::size_t count)
      : comm_(comm), count_(count), send_(count * 4, 4), recv_(count * 4, 8) {
    cudaGraph_t graph{};
    CHECK_CUDA(cudaStreamBeginCapture(cuda_stream(stream_), cudaStreamCaptureModeThreadLocal));
    comm_.all_reduce(send_.data(), recv_.data(), count_, LIBRUN_FLOAT32, LIBRUN_SUM, stream_.get());
    CHECK_CUDA(cudaStreamEndCapture(cuda_stream(stream_), &graph));
    CHECK_CUDA(cudaGraphInstantiate(&executable_, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
  }
  ~NativeGraph() { cudaGraphExecDestroy(executable_); }
  NativeGraph(const NativeGraph&) = delete;
  NativeGraph& operator=(const NativeGraph&) = delete;

  void put(std::uint64_t k) {
    recv_.clear();
    send_.assign(make_input(Fill::random, LIBRUN_FLOAT32, count_, rank(), k));
  }
  cudaError_t launch() { return cudaGraphLaunch(executable_, cuda_stream(stream_)); }
  librun_status_t wait() { return librun_synchronize(comm_.get(), stream_.get()); }
  cudaError_t wait_natively() { return cudaStreamSynchronize(cuda_stream(stream_)); }
  bool untouched() { return recv_.untouched() && recv_.guards_intact(); }

  std::string replay(std::uint64_t k) {
    put(k);
    CHECK_CUDA(launch());
    if (wait() != LIBRUN_OK) return last_error();
    if (!recv_.guards_intact()) return "guard words changed";
    return first_difference(
        LIBRUN_FLOAT32, recv_.fetch(),
        expected_result(Fill::random, LIBRUN_FLOAT32, LIBRUN_SUM, count_, world(), k));
  }

 private:
  librun::Communicator& comm_;
  std::size_t count_;
  Stream stream_;
  GuardedBuffer send_;
  GuardedBuffer recv_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

TEST_CASE("a capture by cudaStreamBeginCapture replays before and after a suspend") {
  librun::Communicator comm = create();
  for (const std::size_t count : {std::size_t{256}, std::size_t{65536}, std::size_t{2} << 20}) {
    INFO(count << " elements");
    NativeGraph graph(comm, count);
    std::uint64_t k = 0;
    for (int cycle = 0; cycle < 5; ++cycle) {
      for (int replay = 0; replay < 3; ++replay) CHECK(graph.replay(++k) == "");
      const auto before = comm.mappings();
      CHECK(comm.suspend());
      const Ballast ballast(before);
      CHECK(comm.resume());
    }
    CHECK(graph.replay(++k) == "");
  }
  comm.close();
}

TEST_CASE("a native replay while suspended ends soon, is reported once, and is exact afterwards") {
  using Clock = std::chrono::steady_clock;
  librun::Communicator comm = create();
  for (const std::size_t count : {std::size_t{256}, std::size_t{65536}, std::size_t{2} << 20}) {
    INFO(count << " elements");
    NativeGraph graph(comm, count);
    CHECK(graph.replay(1) == "");
    CHECK(comm.suspend());
    graph.put(2);
    const auto start = Clock::now();
    CHECK_CUDA(graph.launch());
    CHECK_CUDA(graph.wait_natively());
    CHECK(Clock::now() - start < std::chrono::seconds(5));
    CHECK(graph.untouched());
    CHECK(librun_check(comm.get()) != LIBRUN_OK);
    INFO(last_error());
    CHECK(contains(last_error(), "suspend"));
    CHECK_OK(librun_check(comm.get()));
    CHECK(comm.state() == LIBRUN_SUSPENDED);
    CHECK(comm.resume());
    CHECK(graph.replay(3) == "");
  }
  comm.close();
}

TEST_CASE("the end of a capture is refused by a failed communicator, and yet frees the stream") {
  auto comm = create();
  const Stream stream;
  REQUIRE(librun_graph_begin(comm.get(), stream.get()) == LIBRUN_OK);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(librun_abort(comm.get(), "on purpose") == LIBRUN_OK);
  librun_graph_t graph = nullptr;
  CHECK(librun_graph_end(comm.get(), stream.get(), &graph) != LIBRUN_OK);
  CHECK(graph == nullptr);
  cudaStreamCaptureStatus status{};
  CHECK_CUDA(cudaStreamIsCapturing(cuda_stream(stream), &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  CHECK_CUDA(cudaStreamSynchronize(cuda_stream(stream)));
}

TEST_CASE("two streams take turns on one communicator, with and without a wait in between") {
  librun::Communicator comm = create();
  const Stream streams[2];
  constexpr std::size_t kCount = 10000;
  DeviceVector<std::int64_t> data[2] = {DeviceVector<std::int64_t>(kCount),
                                        DeviceVector<std::int64_t>(kCount)};
  for (std::int64_t round = 0; round < 50; ++round) {
    const auto value = [&](std::size_t i, std::size_t which) {
      return round * 1000 + static_cast<std::int64_t>(i % 97 + which);
    };
    for (const std::size_t which : {0, 1})
      for (std::size_t i = 0; i < kCount; ++i) data[which][i] = value(i, which);
    // In odd rounds both are under way at once; the library keeps them in order.
    for (const std::size_t which : {0, 1}) {
      comm.all_reduce(data[which].data(), data[which].data(), kCount, LIBRUN_SUM,
                      streams[which].get());
      if (round % 2 == 0) comm.synchronize(streams[which].get());
    }
    for (const std::size_t which : {1, 0}) comm.synchronize(streams[which].get());
    std::size_t wrong = 0;
    for (const std::size_t which : {0, 1})
      for (std::size_t i = 0; i < kCount; ++i) wrong += data[which][i] != value(i, which) * world();
    INFO("round " << round);
    CHECK(wrong == 0);
  }
  comm.close();
}

TEST_CASE("device memory of cudaMalloc at odd offsets, which differ from rank to rank") {
  librun::Communicator comm = create();
  constexpr std::size_t kBytes = 1 << 20;
  constexpr std::size_t kHalf = kBytes / 2;
  void* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, kBytes));
  std::uint64_t k = 0;
  for (const librun_dtype_t dtype : kAllDtypes) {
    const std::size_t element_bytes = librun_dtype_bytes(dtype);
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{17}, std::size_t{5003}, std::size_t{50001} / element_bytes}) {
      for (const std::size_t offset : {1, 3, 7, 13}) {
        ++k;
        const std::size_t odd = (offset + 2 * static_cast<std::size_t>(rank())) * element_bytes;
        const std::size_t size_bytes = count * element_bytes;
        auto* bytes = static_cast<std::byte*>(memory);
        GuardedBuffer send(bytes, size_bytes, odd);
        GuardedBuffer recv(bytes + kHalf, size_bytes, odd + 2 * element_bytes);
        send.assign(make_input(Fill::random, dtype, count, rank(), k));
        INFO(librun_dtype_name(dtype) << ", " << count << " elements, offset " << offset);
        CHECK_OK(
            all_reduce_and_wait(comm.get(), send.data(), recv.data(), count, dtype, LIBRUN_SUM));
        CHECK(first_difference(
                  dtype, recv.fetch(),
                  expected_result(Fill::random, dtype, LIBRUN_SUM, count, world(), k)) == "");
        CHECK(send.guards_intact());
        CHECK(recv.guards_intact());
      }
    }
  }
  CHECK_CUDA(cudaFree(memory));
  comm.close();
}

TEST_CASE("memory of cudaMalloc is registered and mapped, before and after a suspend") {
  librun::Communicator comm = create(config_of(LIBRUN_ALGO_ZERO_COPY));
  constexpr std::size_t kCount = 100000;
  constexpr std::size_t kHalf = kCount * 4;
  void* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 1 << 20));
  auto* send = static_cast<std::byte*>(memory) + 256;
  const librun_buffer_t buffer = comm.register_buffer(send, 2 * kHalf);
  CHECK(comm.stats().staged_slots == 0);
  CHECK(comm.stats().open_mappings == 2 * static_cast<std::uint64_t>(world() - 1));
  for (std::uint64_t k = 0; k < 4; ++k) {
    const Bytes input = make_input(Fill::random, LIBRUN_FLOAT32, kCount, rank(), k);
    copy_to_device(send, input.data(), input.size());
    barrier();
    CHECK_OK(
        all_reduce_and_wait(comm.get(), send, send + kHalf, kCount, LIBRUN_FLOAT32, LIBRUN_SUM));
    Bytes result(input.size());
    copy_from_device(result.data(), send + kHalf, result.size());
    CHECK(first_difference(
              LIBRUN_FLOAT32, result.data(),
              expected_result(Fill::random, LIBRUN_FLOAT32, LIBRUN_SUM, kCount, world(), k)) == "");
    CHECK(comm.suspend());
    CHECK(comm.stats().open_mappings == 0);
    CHECK(comm.resume());
    CHECK(comm.stats().staged_slots == 0);
  }
  comm.unregister_buffer(buffer);
  comm.close();
  CHECK_CUDA(cudaFree(memory));
}

TEST_CASE("pinned and managed memory are staged, on all ranks when on one") {
  librun::Communicator comm = create();
  void* memory = nullptr;
  CHECK_CUDA(rank() == 0 ? cudaMallocManaged(&memory, 1 << 20) : cudaMalloc(&memory, 1 << 20));
  const librun_buffer_t managed = comm.register_buffer(memory, 1 << 20);
  DeviceVector<float> pinned(1000);
  const librun_buffer_t host = comm.register_buffer(pinned.data(), 4000);
  CHECK(comm.stats().registered_buffers == 2);
  CHECK(comm.stats().staged_slots == 2);
  CHECK(sum_difference(comm, 1) == "");
  comm.unregister_buffer(managed);
  comm.unregister_buffer(host);
  comm.close();
  CHECK_CUDA(cudaFree(memory));
}

TEST_CASE("close, suspend and free wait for what was launched before") {
  constexpr std::size_t kCount = std::size_t{4} << 20;
  for (std::uint64_t k = 0; k < 6; ++k) {
    librun::Communicator comm = create();
    GuardedBuffer send(kCount * 4, 0);
    GuardedBuffer recv(kCount * 4, 0);
    send.assign(make_input(Fill::pattern, LIBRUN_FLOAT32, kCount, rank(), k));
    const Stream stream;
    for (int call = 0; call < 3; ++call)
      CHECK_OK(librun_all_reduce(comm.get(), send.data(), recv.data(), kCount, LIBRUN_FLOAT32,
                                 LIBRUN_SUM, stream.get()));
    if (k % 2 == 0) CHECK(comm.suspend());
    CHECK_OK(librun_comm_close(comm.get()));
    CHECK(first_difference(LIBRUN_FLOAT32, recv.fetch(),
                           expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, kCount,
                                           world(), k)) == "");
  }
}

TEST_CASE("an error that the program left behind is not taken for a launch's") {
  librun::Communicator comm = create();
  void* nothing = nullptr;
  CHECK(cudaMalloc(&nothing, std::size_t{1} << 60) != cudaSuccess);
  CHECK(sum_difference(comm, 3) == "");
  static_cast<void>(cudaGetLastError());
  comm.close();
}

TEST_CASE("a call that a rank never makes is told after a suspended replay too, and stays told") {
  if (world() == 1) return;  // nobody to wait for
  const ScopedEnv env{{"LIBRUN_CALL_TIMEOUT_MS", "300"}};
  librun::Communicator comm = create();
  NativeGraph graph(comm, 256);
  CHECK(graph.replay(1) == "");
  CHECK(comm.suspend());
  CHECK_CUDA(graph.launch());
  CHECK_CUDA(graph.wait_natively());
  CHECK(comm.resume());
  DeviceVector<float> data(1000, 1);
  if (rank() != 0) {
    CHECK_OK(librun_all_reduce(comm.get(), data.data(), data.data(), data.size(), LIBRUN_FLOAT32,
                               LIBRUN_SUM, nullptr));
    CHECK_CUDA(cudaStreamSynchronize(nullptr));
    CHECK(librun_check(comm.get()) != LIBRUN_OK);
    INFO(last_error());
    CHECK(contains(last_error(), "rank 0 did not come"));
    CHECK(librun_all_reduce(comm.get(), data.data(), data.data(), data.size(), LIBRUN_FLOAT32,
                            LIBRUN_SUM, nullptr) == LIBRUN_FAILED);
  }
  CHECK(hears_of_failure(comm));
  barrier();
  CHECK_OK(librun_comm_close(comm.get()));
}
