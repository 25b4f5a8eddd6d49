// SPDX-License-Identifier: Apache-2.0
// Memory, streams and times of the device that a tool's data is on: the host, or one GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "librun/types.h"

namespace car {

/// Which device this is, for people and for telling whether two ranks share one.
struct DeviceIdentity {
  std::string name = "host";
  std::string bus_id;                       ///< "0000:1b:00.0"; "" on the host
  std::array<unsigned char, 16> uuid = {};  ///< zeros on the host
};

/// Memory that the device works on, or memory of the host that the device can reach.
enum class Place { device, pinned };

/// One per process, and longer-lived than all that is made from it. All sizes in bytes; a stream is
/// what librun takes as one: null on the host, a cudaStream_t on CUDA.
class Device {
 public:
  virtual ~Device() = default;

  virtual librun_device_t kind() const noexcept = 0;
  /// CUDA ordinal, -1 on the host.
  virtual int ordinal() const noexcept = 0;
  virtual DeviceIdentity identity() const = 0;
  /// True when calls return before their work is done, and Place::device is closed to the host.
  virtual bool is_asynchronous() const noexcept = 0;
  /// Memory that can still be had; 0 when unknown.
  virtual std::uint64_t available_bytes() const = 0;

  /// Not cleared; aligned to 256 at least. @throws std::bad_alloc
  virtual void* allocate(std::size_t size_bytes, Place place) = 0;
  virtual void release(void* memory, Place place) noexcept = 0;
  /// In any direction. It is done on return; it waits for no other stream.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
  virtual void fill(void* to, std::byte value, std::size_t size_bytes) = 0;

  virtual void* make_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize(void* stream) = 0;

  virtual void* make_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, void* stream) = 0;
  /// Waits for `last`.
  virtual double elapsed_us(void* first, void* last) = 0;

  /// Records what is put on `stream`, to be launched later. Only where calls are asynchronous.
  virtual void begin_capture(void* stream) = 0;
  virtual void* end_capture(void* stream) = 0;
  virtual void launch(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;

  /// Takes free addresses, so that no mapping can be there. False when they are not to be had.
  virtual bool occupy(void* address, std::size_t size_bytes) = 0;
  virtual void vacate(void* address, std::size_t size_bytes) noexcept = 0;
};

std::unique_ptr<Device> make_host_device();
/// Makes `ordinal` the current device of this thread. @throws std::runtime_error
std::unique_ptr<Device> make_cuda_device(int ordinal);
/// GPUs that this process may use; 0 without CUDA in this build or without a driver.
int cuda_device_count() noexcept;

/// Something that one of Device's functions takes back.
template <void (Device::*Destroy)(void*) noexcept>
class DeviceOwned {
 public:
  DeviceOwned() = default;
  DeviceOwned(Device& device, void* handle) : device_(&device), handle_(handle) {}
  DeviceOwned(DeviceOwned&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceOwned& operator=(DeviceOwned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~DeviceOwned() {
    if (handle_) (device_->*Destroy)(handle_);
  }
  void* get() const noexcept { return handle_; }

 private:
  Device* device_ = nullptr;
  void* handle_ = nullptr;
};

using DeviceStream = DeviceOwned<&Device::destroy_stream>;
using DeviceEvent = DeviceOwned<&Device::destroy_event>;
using DeviceGraph = DeviceOwned<&Device::destroy_graph>;

inline DeviceStream make_stream(Device& device) { return {device, device.make_stream()}; }

/// Memory that frees itself.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device& device, std::size_t size_bytes, Place place = Place::device);
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  std::byte* data() const noexcept { return data_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  Place place_ = Place::device;
};

/// Time between two points of a stream; on the host, of the caller.
class StreamTimer {
 public:
  explicit StreamTimer(Device& device)
      : device_(device), first_(device, device.make_event()), last_(device, device.make_event()) {}
  void start(void* stream) { device_.record(first_.get(), stream); }
  void stop(void* stream) { device_.record(last_.get(), stream); }
  /// Waits for the second point.
  double elapsed_us() const { return device_.elapsed_us(first_.get(), last_.get()); }

 private:
  Device& device_;
  DeviceEvent first_, last_;
};

}  // namespace car
