// SPDX-License-Identifier: Apache-2.0
// One GPU, through the CUDA runtime.
#include <cudaTypedefs.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "common/cuda_check.hpp"
#include "common/device_memory.hpp"

namespace car {
namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

/// Of GPU memory, as the driver hands addresses out.
std::size_t whole_pages(std::size_t size_bytes) {
  constexpr std::size_t kPageBytes = std::size_t{2} << 20;
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {
    check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
    copies_ = stream_of(make_stream());
  }
  ~CudaDevice() override { cudaStreamDestroy(copies_); }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  librun_device_t kind() const noexcept override { return LIBRUN_DEVICE_CUDA; }
  int ordinal() const noexcept override { return ordinal_; }
  bool is_asynchronous() const noexcept override { return true; }

  DeviceIdentity identity() const override {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
    char bus_id[32] = {};
    check_cuda(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ordinal_), "cudaDeviceGetPCIBusId");
    DeviceIdentity identity{properties.name, bus_id, {}};
    std::memcpy(identity.uuid.data(), properties.uuid.bytes, identity.uuid.size());
    return identity;
  }

  std::uint64_t available_bytes() const override {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    return free_bytes;
  }

  void* allocate(std::size_t size_bytes, Place place) override {
    void* memory = nullptr;
    const std::size_t wanted = std::max<std::size_t>(size_bytes, 1);
    const cudaError_t error = place == Place::device
                                  ? cudaMalloc(&memory, wanted)
                                  : cudaHostAlloc(&memory, wanted, cudaHostAllocMapped);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    check_cuda(error, place == Place::device ? "cudaMalloc" : "cudaHostAlloc");
    return memory;
  }
  void release(void* memory, Place place) noexcept override {
    place == Place::device ? cudaFree(memory) : cudaFreeHost(memory);
  }
  // On a stream of their own: the legacy stream would wait for kernels that wait for peers.
  void copy(void* to, const void* from, std::size_t size_bytes) override {
    check_cuda(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, copies_),
               "cudaMemcpyAsync");
    synchronize(copies_);
  }
  void fill(void* to, std::byte value, std::size_t size_bytes) override {
    check_cuda(cudaMemsetAsync(to, std::to_integer<int>(value), size_bytes, copies_),
               "cudaMemsetAsync");
    synchronize(copies_);
  }

  void* make_stream() override {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
    return stream;
  }
  void destroy_stream(void* stream) noexcept override { cudaStreamDestroy(stream_of(stream)); }
  void synchronize(void* stream) override {
    check_cuda(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
  }

  void* make_event() override {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "cudaEventCreate");
    return event;
  }
  void destroy_event(void* event) noexcept override { cudaEventDestroy(event_of(event)); }
  void record(void* event, void* stream) override {
    check_cuda(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
  }
  double elapsed_us(void* first, void* last) override {
    check_cuda(cudaEventSynchronize(event_of(last)), "cudaEventSynchronize");
    float elapsed_ms = 0;
    check_cuda(cudaEventElapsedTime(&elapsed_ms, event_of(first), event_of(last)),
               "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(elapsed_ms);
  }

  void begin_capture(void* stream) override {
    check_cuda(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
  }
  void* end_capture(void* stream) override {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream_of(stream), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t runnable = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&runnable, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(error, "cudaGraphInstantiate");
    return runnable;
  }
  void launch(void* graph, void* stream) override {
    check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)),
               "cudaGraphLaunch");
  }
  void destroy_graph(void* graph) noexcept override {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  }

  bool occupy(void* address, std::size_t size_bytes) override {
    size_bytes = whole_pages(size_bytes);
    if (!reserve_)
      reserve_ = driver_function<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve", 10020);
    if (!free_) free_ = driver_function<PFN_cuMemAddressFree_v10020>("cuMemAddressFree", 10020);
    if (!reserve_ || !free_) return false;
    const auto wanted = reinterpret_cast<CUdeviceptr>(address);
    CUdeviceptr taken = 0;
    if (reserve_(&taken, size_bytes, 0, wanted, 0) != CUDA_SUCCESS) return false;
    if (taken == wanted) return true;
    free_(taken, size_bytes);  // the address is a hint, and was not free
    return false;
  }
  void vacate(void* address, std::size_t size_bytes) noexcept override {
    free_(reinterpret_cast<CUdeviceptr>(address), whole_pages(size_bytes));
  }

 private:
  int ordinal_;
  cudaStream_t copies_ = nullptr;
  PFN_cuMemAddressReserve_v10020 reserve_ = nullptr;
  PFN_cuMemAddressFree_v10020 free_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  return std::make_unique<CudaDevice>(ordinal);
}

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

}  // namespace car
