// SPDX-License-Identifier: Apache-2.0
// The memory of librun_malloc, known to all communicators of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ipc/segment.hpp"

namespace librun {

/// Where a pointer lies in an allocation.
struct Located {
  std::shared_ptr<ipc::Segment> segment;  ///< null: not our memory
  std::size_t offset_bytes = 0;
};

/// Thread-safe.
class Allocations {
 public:
  static Allocations& instance();

  /// @param owner the communicator that frees it if nobody else does @throws Error{system}
  std::shared_ptr<ipc::Segment> allocate(std::shared_ptr<Device> device, std::size_t size_bytes,
                                         const void* owner);
  /// @throws Error{invalid_argument} unknown pointer, Rejection: still registered
  void free(void* address);
  /// Gives up what `owner` left; memory that is registered elsewhere lives on until then.
  void drop_owner(const void* owner);

  Located locate(const void* address, std::size_t size_bytes) const;
  /// The same for memory of the user that `device` can export, one segment for each allocation.
  Located locate_foreign(const std::shared_ptr<Device>& device, const void* address,
                         std::size_t size_bytes);

  struct Usage {
    std::uint64_t segments;
    std::uint64_t size_bytes;
  };
  Usage usage(const void* owner) const;

 private:
  struct Entry {
    std::shared_ptr<ipc::Segment> segment;
    const void* owner;
  };
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Entry> by_address_;
  std::map<std::uintptr_t, std::weak_ptr<ipc::Segment>> foreign_;  // while registered
  std::uint64_t next_id_ = 1;
};

}  // namespace librun
