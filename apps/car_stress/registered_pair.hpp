// SPDX-License-Identifier: Apache-2.0
// Two registered buffers of a communicator, of a random kind of memory.
#pragma once

#include <cstddef>
#include <vector>

#include "car_stress/random.hpp"
#include "common/device_memory.hpp"
#include "librun/librun.hpp"

namespace car::stress {

/// Memory for inputs and for outputs, registered with one communicator.
class RegisteredPair {
 public:
  enum class Kind { own, lent, slices, twice, plain };

  /// Collective over `comm`.
  /// @param lender whose librun_malloc gives the memory of the kind `lent`; lives longer than this
  /// @param random equal on all ranks
  RegisteredPair(Device& device, librun::Communicator& comm, librun::Communicator& lender,
                 std::size_t each_bytes, Random& random);

  /// Collective while `comm` is active, local while it is suspended.
  void unregister();
  /// Local; after unregister().
  void free_memory();

  std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }
  std::size_t each_bytes() const { return each_bytes_; }
  /// Memory that the library owns; null for the kind `plain`.
  void* library_memory() const { return allocations_.empty() ? nullptr : allocations_.front(); }

 private:
  std::byte* allocate(librun::Communicator& owner, std::size_t size_bytes);
  void add(void* address) { handles_.push_back(comm_->register_buffer(address, each_bytes_)); }

  librun::Communicator* comm_;
  librun::Communicator* owner_;
  std::size_t each_bytes_;
  DeviceBuffer plain_;
  std::vector<void*> allocations_;
  std::vector<librun_buffer_t> handles_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

}  // namespace car::stress
