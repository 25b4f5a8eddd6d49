// SPDX-License-Identifier: Apache-2.0
// Where the library works in this process, host or GPU, and memory and streams of that place. The
// tests use these, and are the same on both.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace librun_test {

/// True when the library works on a GPU in this process.
bool on_cuda();

/// For main(), after MPI_Init. LIBRUN_DEVICE=cuda takes the GPU for this rank; otherwise the host
/// is made explicit, so that the library does not choose a GPU by itself. Collective.
/// @return why it cannot be, "" when it can
std::string choose_device();

/// Memory that the library can use, and the test can read and write.
void* allocate_visible(std::size_t size_bytes);
void free_visible(void* memory, std::size_t size_bytes) noexcept;
/// Memory that is read and written with the copies below only.
void* allocate_on_device(std::size_t size_bytes);
void free_on_device(void* memory, std::size_t size_bytes) noexcept;
void copy_to_device(void* device, const void* host, std::size_t size_bytes);
void copy_from_device(void* host, const void* device, std::size_t size_bytes);

/// Takes this address range, so that nothing else can be mapped there.
/// @return false when it is in use, or only another one could be had
bool occupy(void* address, std::size_t size_bytes);
void vacate(void* address, std::size_t size_bytes) noexcept;

/// A stream that does not wait for others; the host has none.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// To hand to the library; nullptr on the host.
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

template <class T>
struct DeviceAllocator {
  using value_type = T;

  DeviceAllocator() = default;
  template <class U>
  DeviceAllocator(const DeviceAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_visible(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept {
    free_visible(memory, count * sizeof(T));
  }
  template <class U>
  bool operator==(const DeviceAllocator<U>&) const {
    return true;
  }
};

/// A vector that the library can use.
template <class T>
using DeviceVector = std::vector<T, DeviceAllocator<T>>;
using DeviceBytes = DeviceVector<std::byte>;

/// One value that the library can use.
template <class T>
class DeviceValue {
 public:
  explicit DeviceValue(T value) : memory_(1, value) {}
  T* at() { return memory_.data(); }
  T& operator*() { return memory_[0]; }

 private:
  DeviceVector<T> memory_;
};

}  // namespace librun_test
