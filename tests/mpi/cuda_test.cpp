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
