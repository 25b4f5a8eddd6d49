// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: memory of a GPU, and launches on the caller's streams.
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <future>
#include <new>
#include <random>
#include <system_error>
#include <thread>

#include "kernels/cuda/captured_graph.hpp"
#include "kernels/cuda/geometry.hpp"
#include "kernels/cuda/identity.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/layout.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/stream_order.hpp"
#include "kernels/dtype.hpp"
#include "kernels/fault.hpp"

namespace librun {
namespace {

using namespace cuda;
using Deadline = std::chrono::steady_clock::time_point;

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

LineWords draw_pattern() {
  std::random_device random;
  return {{random(), random(), random(), random()}};
}

UniqueStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return UniqueStream(stream);
}

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, bool legacy, const CudaOptions& options)
      : ordinal_(ordinal),
        early_(options.programmatic_launch && has_programmatic_launch(ordinal)),
        max_blocks_(options.max_blocks),
        guard_for_construction_(std::make_unique<DeviceGuard>(ordinal)),
        name_(device_name(ordinal)),
        legacy_(legacy),
        memory_(ordinal, legacy),
        stream_(make_stream()),
        order_(std::make_shared<StreamOrder>()) {
    state_ = reinterpret_cast<DeviceState*>(memory_.commit_local(sizeof(DeviceState)));
    check(cudaMemsetAsync(state_, 0, sizeof(DeviceState), stream_.get()), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    guard_for_construction_.reset();
  }
  ~CudaDevice() override {
    const DeviceGuard guard(ordinal_);
    memory_.clear();
    capture_stream_.reset();
    stream_.reset();
    order_.reset();
  }

  DeviceInfo info() const override {
    return {LIBRUN_DEVICE_CUDA,  name_, device_uuid(ordinal_), legacy_, false, cuda::kMaxWorld,
            cuda::kMinArenaBytes};
  }
  void check_peer(const std::string& id) const override { check_reach(ordinal_, id); }
  std::vector<std::string> checkpoint_obstacles() const override {
    return cuda::checkpoint_obstacles(ordinal_);
  }
  std::size_t default_arena_bytes(int /*world*/) const override { return kDefaultArenaBytes; }
  ArenaLayout layout_arena(int world, std::size_t arena_bytes, int ranks_on_device) const override {
    return make_layout(world, arena_bytes, ranks_on_device, max_blocks_);
  }

  LaunchGrid grid_of(const AllReduceArgs& args) const override {
    Spread spread = spread_on(args);
    // Blocks of teams that have no place in the present layout leave at once.
    const std::uint32_t places = args.control->layout.max_blocks;
    if (spread.fair_lines > 0) spread.n_blocks = std::min(spread.n_blocks, places);
    return {spread.n_blocks, spread.n_threads};
  }

  std::byte* commit(std::byte* address, std::size_t size_bytes, Memory memory) override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    if (memory == Memory::control) {
      control_ = std::make_unique<ControlBlock>();
      return reinterpret_cast<std::byte*>(control_.get());
    }
    if (memory == Memory::host_words) {
      std::byte* words = memory_.commit_pinned(size_bytes);
      std::memset(words, 0, size_bytes);
      return words;
    }
    std::byte* committed = memory == Memory::exportable
                               ? memory_.commit_exportable(address, size_bytes)
                               : memory_.commit_local(size_bytes);
    check(cudaMemsetAsync(committed, 0, size_bytes, stream_.get()), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    return committed;
  }
  Exported export_memory(std::byte* address) override {
    const DeviceGuard guard(ordinal_);
    return memory_.export_memory(address);
  }
  std::optional<Allocation> find_allocation(const void* address) const override {
    return find_user_allocation(address, ordinal_);
  }
  int release(std::byte* address, std::size_t /*size_bytes*/, bool keep_address) noexcept override {
    if (address == reinterpret_cast<std::byte*>(control_.get())) {
      control_.reset();
      return 0;
    }
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    return memory_.release(address, keep_address);
  }

  std::byte* map(const Exported& exported, std::size_t size_bytes) override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    return memory_.map(exported, size_bytes);
  }
  int unmap(std::byte* address, std::size_t /*size_bytes*/) noexcept override {
    const DeviceGuard guard(ordinal_);
    return memory_.release(address, false);
  }

  void copy(void* dst, const void* src, std::size_t size_bytes) override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    check(cudaMemcpyAsync(dst, src, size_bytes, cudaMemcpyDefault, stream_.get()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }

  void publish(const ControlBlock& control) override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    // Not the gate: a launch may have closed it.
    constexpr std::size_t kFirst = offsetof(ControlBlock, rank);
    check(cudaMemcpyAsync(reinterpret_cast<std::byte*>(&state_->control) + kFirst,
                          reinterpret_cast<const std::byte*>(&control) + kFirst,
                          sizeof(control) - kFirst, cudaMemcpyHostToDevice, stream_.get()),
          "cudaMemcpyAsync");
    const bool fresh = !published_ || control.generation != generation_;
    if (fresh) {
      constexpr std::size_t kBegin = offsetof(DeviceState, step);
      constexpr std::size_t kEnd = offsetof(DeviceState, caught);
      check(cudaMemsetAsync(reinterpret_cast<std::byte*>(state_) + kBegin, 0, kEnd - kBegin,
                            stream_.get()),
            "cudaMemsetAsync");
    }
    publish_peers(control, fresh);
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    if (!published_) bounds_ = bounds_of(control.layout);
    published_ = true;
    generation_ = control.generation;
  }
  void publish_gate(const ControlBlock& control) noexcept override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    const std::uint32_t gate = control.gate == kGateOpen ? peers_.open_gate : kGateClosed;
    // What fails here fails every later call too, and is told there.
    static_cast<void>(cudaMemcpyAsync(&state_->control.gate, &gate, sizeof(gate),
                                      cudaMemcpyHostToDevice, stream_.get()));
    static_cast<void>(cudaStreamSynchronize(stream_.get()));
  }

  void launch(const AllReduceArgs& args, void* stream) override {
    const DeviceGuard guard(ordinal_);
    if constexpr (fault::kEnabled)
      fault::at("before_publish", static_cast<int>(args.control->rank));
    const cudaStream_t on = capturing_ && !stream ? capture_stream_.get() : as_stream(stream);
    order_->enter(on);
    try {
      run(args, on);
    } catch (const Error&) {
      order_->leave(on);  // an announcement may be on its way
      throw;
    }
    order_->leave(on);
  }

  void probe(std::span<const ProbeItem> items, int rank) override {
    if (items.empty()) return;
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    std::byte* copied = memory_.commit_local(items.size_bytes());
    try {
      copy(copied, items.data(), items.size_bytes());
      check(launch_probe(reinterpret_cast<const ProbeItem*>(copied), static_cast<int>(items.size()),
                         rank, stream_.get()),
            "probe");
      check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    } catch (const Error&) {
      memory_.release(copied, false);
      throw;
    }
    memory_.release(copied, false);
  }

  bool drain(void* stream, Deadline deadline) override {
    const DeviceGuard guard(ordinal_);
    const CaptureGuard capture_guard;
    constexpr int kYields = 2000;
    // A query would spoil a capture.
    cudaStreamCaptureStatus capture{};
    const bool known = cudaStreamIsCapturing(as_stream(stream), &capture) == cudaSuccess;
    if (!known) static_cast<void>(cudaGetLastError());
    if (!known || capture != cudaStreamCaptureStatusNone)
      throw Error(LIBRUN_INVALID_STATE, -1, "the stream is being captured.",
                  "end the capture and launch its graph first.");
    for (int polls = 0;; ++polls) {
      const cudaError_t state = cudaStreamQuery(as_stream(stream));
      if (state != cudaErrorNotReady) {
        check(state, "a kernel", "the device is lost to this process.");
        return true;
      }
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (polls < kYields)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  // No call waits for a whole device with a deadline, so that a thread makes the one without.
  bool drain_all(Deadline deadline) override {
    auto promise = std::make_shared<std::promise<cudaError_t>>();
    std::future<cudaError_t> done = promise->get_future();
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([promise, ordinal = ordinal_] {
        const CaptureGuard capture_guard;
        cudaSetDevice(ordinal);
        promise->set_value(cudaDeviceSynchronize());
      }).detach();
    } catch (const std::system_error& error) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw Error(LIBRUN_SYSTEM, -1, "cannot start a thread (" + std::string(error.what()) + ").",
                  "check the limit of processes (ulimit -u).");
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (done.wait_until(deadline) != std::future_status::ready) return false;
    const cudaError_t state = done.get();
    if (state == cudaErrorStreamCaptureUnsupported || state == cudaErrorStreamCaptureImplicit ||
        state == cudaErrorStreamCaptureInvalidated)
      throw Error(LIBRUN_REJECTED, -1, "a stream of this process is being captured.",
                  "end the capture first.");
    check(state, "a kernel", "the device is lost to this process.");
    return true;
  }

  bool begin_capture(void* stream, bool baked_pointers) override {
    const DeviceGuard guard(ordinal_);
    // The legacy stream cannot be captured: a stream of our own stands in for it.
    if (!stream && !capture_stream_) capture_stream_ = make_stream();
    check(cudaStreamBeginCapture(stream ? as_stream(stream) : capture_stream_.get(),
                                 cudaStreamCaptureModeRelaxed),
          "cudaStreamBeginCapture");
    capturing_ = true;
    baked_ = baked_pointers;
    return true;
  }
  std::unique_ptr<CapturedLaunches> end_capture(void* stream) override {
    const DeviceGuard guard(ordinal_);
    capturing_ = false;
    baked_ = false;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream ? as_stream(stream) : capture_stream_.get(), &graph),
          "cudaStreamEndCapture");
    return std::make_unique<CapturedGraph>(ordinal_, order_, UniqueGraph(graph));
  }

 private:
  /// The table as kernels like it; a fresh arena's rings are armed before any peer may write there.
  void publish_peers(const ControlBlock& control, bool fresh) {
    if (fresh) armed_ = draw_pattern();
    peers_ = make_peer_table(control, armed_);
    check(cudaMemcpyAsync(&state_->peers, &peers_, sizeof(peers_), cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync");
    if (!fresh || !peers_.arena[0]) return;
    const std::uint64_t rings_bytes = control.layout.staging[0] - control.layout.rings[0];
    check(launch_arm(peers_.arena[0] + control.layout.rings[0], rings_bytes, armed_,
                     on(plain_spread(rings_bytes, 0), stream_.get())),
          "arm");
  }

  static Geometry on(const Spread& spread, cudaStream_t stream) {
    return {spread.n_blocks, spread.n_threads, stream};
  }

  Spread spread_on(const AllReduceArgs& args) const {
    const auto world = static_cast<int>(args.control->world);
    const bool has_teams = world > 1 && args.body != Body::stage_publish &&
                           args.body != Body::stage_reduce && args.count > 0;
    return has_teams ? spread_of(args, world, bounds_)
                     : plain_spread(args.count * element_bytes(args.dtype), max_blocks_);
  }

  void run(const AllReduceArgs& args, cudaStream_t stream) {
    const ControlBlock& control = *args.control;
    const int world = static_cast<int>(control.world);
    const std::uint64_t size_bytes = args.count * element_bytes(args.dtype);
    const Spread spread = spread_on(args);
    KernelArgs kernel_args{state_,     args.send,    args.recv,
                           args.count, spread.lines, spread.fair_lines,
                           args.op,    args.body,    false};
    Shape shape{args.dtype, world, on(spread, stream)};
    if (args.body == Body::stage_publish)
      return check(launch_stage_publish(kernel_args, size_bytes, shape.geometry), "stage_publish");
    if (args.body == Body::stage_reduce)
      return check(launch_stage_reduce(kernel_args, shape), "stage_reduce");

    if (world > 1 && (args.check || args.body == Body::zero_copy || args.reject != Reject::none)) {
      Announcement mine = announcement_of(args, control.words->calls);
      mine.reject = static_cast<std::uint32_t>(args.reject);
      check(launch_announce(state_, mine, args.check, stream), "announce");
      kernel_args.announced = true;
    }
    if (args.reject != Reject::none || args.count == 0 || args.body == Body::announce) return;
    if (world == 1) return check(launch_copy(kernel_args, size_bytes, shape.geometry), "copy");
    shape.geometry.early = early_ && !kernel_args.announced;
    const bool can_bake =
        args.dtype == LIBRUN_FLOAT32 && args.op == LIBRUN_SUM && args.body != Body::zero_copy;
    if (baked_ && can_bake)
      return check(launch_baked({kernel_args, peers_}, shape), "a baked kernel");
    switch (args.body) {
      case Body::ll:
        return check(launch_ll(kernel_args, shape), "ll");
      case Body::one_shot:
        return check(launch_one_shot(kernel_args, shape), "one_shot");
      case Body::two_shot:
        return check(launch_two_shot(kernel_args, shape), "two_shot");
      default:
        return check(launch_zero_copy(kernel_args, shape), "zero_copy");
    }
  }

  int ordinal_;
  bool early_;
  std::uint32_t max_blocks_;
  std::unique_ptr<DeviceGuard> guard_for_construction_;
  std::string name_;
  bool legacy_;
  DeviceMemoryPool memory_;
  UniqueStream stream_;  ///< for what librun does itself
  std::shared_ptr<StreamOrder> order_;
  DeviceState* state_ = nullptr;
  PeerTable peers_{};
  LineWords armed_{};  ///< of this generation
  std::unique_ptr<ControlBlock> control_;
  bool published_ = false;
  GridBounds bounds_{};
  std::uint64_t generation_ = 0;
  UniqueStream capture_stream_;
  bool capturing_ = false;
  bool baked_ = false;  ///< launches of the open capture hold the peers' pointers
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int ordinal, const CudaOptions& options) {
  int n_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&n_devices);
  if (error != cudaSuccess || n_devices == 0) {
    static_cast<void>(cudaGetLastError());
    throw Error(LIBRUN_UNSUPPORTED, -1,
                std::string("there is no CUDA device (") +
                    (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error)) + ").",
                "use --device host or LIBRUN_DEVICE=host.");
  }
  if (ordinal < 0) check(cudaGetDevice(&ordinal), "cudaGetDevice");
  if (ordinal >= n_devices)
    throw Error(LIBRUN_INVALID_ARGUMENT, -1,
                "CUDA device " + std::to_string(ordinal) + " does not exist: there are " +
                    std::to_string(n_devices) + ".",
                "set librun_config_t.cuda_device to -1 for the current one.");
  const bool descriptors = has_descriptors(ordinal);
  if (options.ipc == "descriptor" && !descriptors)
    throw Error(LIBRUN_UNSUPPORTED, -1,
                "LIBRUN_IPC=descriptor: the driver exports no file descriptors on CUDA device " +
                    std::to_string(ordinal) + ".",
                "use LIBRUN_IPC=auto.");
  return std::make_unique<CudaDevice>(ordinal, options.ipc == "legacy" || !descriptors, options);
}

}  // namespace librun
