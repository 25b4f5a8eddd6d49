// SPDX-License-Identifier: Apache-2.0
// Lines of 16 bytes that are written and read at the same time, by different ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace librun_test {

struct StormCounts {
  std::uint64_t reads;
  std::uint64_t changes;  ///< reads that found another line than the one before
  std::uint64_t torn;     ///< reads that found words of different lines
};

/// Memory of the current GPU that another process can open.
class StormMemory {
 public:
  static constexpr std::uint32_t kLines = 64 * 256;

  StormMemory();
  ~StormMemory();
  StormMemory(const StormMemory&) = delete;
  StormMemory& operator=(const StormMemory&) = delete;

  static constexpr std::size_t kHandleBytes = 64;
  /// @param handle kHandleBytes
  void export_to(void* handle) const;
  /// Where a peer's memory is mapped from now on, instead of this rank's own.
  void open_peer(const void* handle);

  /// Writes every line of the peer's `rounds` times, and reads every line of its own as often, as
  /// the kernels do. Neighbouring threads have lines that are `stride` apart, odd. Waits for it.
  StormCounts run(std::uint32_t rounds, std::uint32_t stride);

 private:
  void* own_ = nullptr;
  void* peer_ = nullptr;
  StormCounts* counts_ = nullptr;  ///< pinned
};

}  // namespace librun_test
