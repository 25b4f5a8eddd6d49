// SPDX-License-Identifier: Apache-2.0
// The host: plain memory, no stream, calls that are done on return.
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>

#include "common/device_memory.hpp"

namespace car {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPageBytes = 4096;

class HostDevice final : public Device {
 public:
  librun_device_t kind() const noexcept override { return LIBRUN_DEVICE_HOST; }
  int ordinal() const noexcept override { return -1; }
  DeviceIdentity identity() const override { return {}; }
  bool is_asynchronous() const noexcept override { return false; }

  std::uint64_t available_bytes() const override {
    std::ifstream file("/proc/meminfo");
    std::string key;
    std::uint64_t kib = 0;
    std::string unit;
    while (file >> key >> kib >> unit)
      if (key == "MemAvailable:") return kib * 1024;
    return 0;
  }

  void* allocate(std::size_t size_bytes, Place) override {
    const std::size_t rounded = (size_bytes / kPageBytes + 1) * kPageBytes;
    void* const memory = std::aligned_alloc(kPageBytes, rounded);
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  void release(void* memory, Place) noexcept override { std::free(memory); }
  void copy(void* to, const void* from, std::size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
  }
  void fill(void* to, std::byte value, std::size_t size_bytes) override {
    std::memset(to, std::to_integer<int>(value), size_bytes);
  }

  void* make_stream() override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void synchronize(void*) override {}

  void* make_event() override { return new Clock::time_point; }
  void destroy_event(void* event) noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void record(void* event, void*) override {
    *static_cast<Clock::time_point*>(event) = Clock::now();
  }
  double elapsed_us(void* first, void* last) override {
    return std::chrono::duration<double, std::micro>(*static_cast<Clock::time_point*>(last) -
                                                     *static_cast<Clock::time_point*>(first))
        .count();
  }

  void begin_capture(void*) override { throw std::logic_error("the host has no streams"); }
  void* end_capture(void*) override { throw std::logic_error("the host has no streams"); }
  void launch(void*, void*) override { throw std::logic_error("the host has no streams"); }
  void destroy_graph(void*) noexcept override {}

  bool occupy(void* address, std::size_t size_bytes) override {
    // NOREPLACE: what is still mapped there must not be torn away under its owner.
    void* const taken =
        mmap(address, size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken == MAP_FAILED) return false;
    if (taken == address) return true;
    munmap(taken, size_bytes);  // kernels before 4.17 take the address as a hint
    return false;
  }
  void vacate(void* address, std::size_t size_bytes) noexcept override {
    munmap(address, size_bytes);
  }
};

}  // namespace

std::unique_ptr<Device> make_host_device() { return std::make_unique<HostDevice>(); }

}  // namespace car
