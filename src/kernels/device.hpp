// SPDX-License-Identifier: Apache-2.0
// The seam between librun and where the data lives. Callers never ask which device it is.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/control_block.hpp"
#include "kernels/unique_handle.hpp"
#include "librun/types.h"

namespace librun {

/// What a launch does. The first four are the algorithms; the stages are the halves of `stepped`,
/// which never wait; announce only compares the arguments.
enum class Body : std::uint32_t {
  ll,
  one_shot,
  two_shot,
  zero_copy,
  stage_publish,
  stage_reduce,
  announce
};

/// The argument of a launch. Nothing in it goes stale: no peer pointer, epoch or parity.
struct AllReduceArgs {
  ControlBlock* control;
  const std::byte* send;
  std::byte* recv;
  std::uint64_t count;
  librun_dtype_t dtype;
  librun_op_t op;
  Body body;
  bool check;     ///< compare the arguments of all ranks first
  Reject reject;  ///< not none: this rank refuses; take part without touching a buffer
  int send_slot;  ///< -1: not registered
  int recv_slot;
  std::uint16_t send_number;  ///< Slot::number
  std::uint16_t recv_number;
  int algo;  ///< librun_algo_t that led here, for messages
};

/// What a rank says about its call when arguments are compared; fits into the data of a line.
struct Announcement {
  std::uint64_t count;
  std::uint64_t call;
  std::uint64_t send_offset;  ///< bytes into the registered buffer
  std::uint64_t recv_offset;
  std::uint8_t dtype;
  std::uint8_t op;
  std::uint8_t algo;
  std::uint8_t in_place;
  std::int16_t send_slot;
  std::int16_t recv_slot;
  std::uint32_t reject;       ///< Reject; only where the epoch has no room for it
  std::uint16_t send_number;  ///< Slot::number when the call was made
  std::uint16_t recv_number;
};
static_assert(sizeof(Announcement) == 48 && sizeof(Announcement) <= kLineDataBytes);

Announcement announcement_of(const AllReduceArgs& args, std::uint64_t call);
/// True when all calls fit together. Slots, offsets and in-place may differ.
bool same_call(const Announcement& a, const Announcement& b);

/// One read through a mapping and one answer back: *answer = proof_answer(*question, rank).
struct ProbeItem {
  const std::uint64_t* question;
  std::uint64_t* answer;
};

/// The answer of `rank`: differs for each rank and each question.
constexpr std::uint64_t proof_answer(std::uint64_t question, int rank) {
  std::uint64_t mixed = question + (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 32;
}

enum class Memory {
  exportable,  ///< has a descriptor that peers can map
  local,       ///< of this process alone, on the device
  host_words,  ///< of this process alone, seen by host and device at any time
  control      ///< a ControlBlock: the host writes it, launches see what was published
};

/// What a peer needs to map a segment: a descriptor, or else a handle of the driver.
struct Exported {
  UniqueFd fd;
  std::array<std::byte, 64> handle{};
};

/// Memory of the user that peers can map as a whole.
struct Allocation {
  std::byte* address;
  std::size_t size_bytes;
};

struct DeviceInfo {
  librun_device_t kind;
  std::string name;
  std::string id;      ///< differs between devices of one node
  bool by_handle;      ///< exports of its own memory are handles, not descriptors
  bool launches_wait;  ///< a launch has run when it returns; otherwise drain() tells
  int max_world;
  std::size_t min_arena_bytes;
};

/// What a launch takes of a GPU, which the program has other work for; nothing on the host.
struct LaunchGrid {
  std::uint32_t n_blocks = 0;
  std::uint32_t n_threads = 0;  ///< of each block
};

/// What was launched on one stream between begin_capture and end_capture.
class CapturedLaunches {
 public:
  virtual ~CapturedLaunches() = default;
  /// In the order of `stream`. @throws Error{cuda}
  virtual void launch(void* stream) = 0;
};

/// One per communicator; not thread-safe. Sizes in bytes. @throws Error unless noexcept
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceInfo info() const = 0;
  /// @param id another rank's DeviceInfo::id @throws Error{unsupported} when launches here cannot
  ///        reach the memory there
  virtual void check_peer(const std::string& id) const = 0;
  /// What of device and driver makes a checkpoint of this process impossible, for life; a sentence
  /// each.
  virtual std::vector<std::string> checkpoint_obstacles() const = 0;
  /// What an arena has unless the user says otherwise.
  virtual std::size_t default_arena_bytes(int world) const = 0;
  /// @param ranks_on_device the most that share one device; a launch that waits must leave them
  /// room
  virtual ArenaLayout layout_arena(int world, std::size_t arena_bytes,
                                   int ranks_on_device) const = 0;

  /// Zeroed memory at `address`, which must come from an earlier commit that was released with its
  /// address kept, or at a new address when null. A device that exports handles keeps no address:
  /// what was exported once cannot be exported again after a checkpoint.
  virtual std::byte* commit(std::byte* address, std::size_t size_bytes, Memory memory) = 0;
  /// Of committed exportable memory, or of an allocation that was found; for one passing on.
  virtual Exported export_memory(std::byte* address) = 0;
  /// The allocation around `address`, which is not ours. @return nothing when peers cannot map it
  virtual std::optional<Allocation> find_allocation(const void* address) const = 0;
  /// Gives the memory back, and the address too unless `keep_address`. @return 0 or errno
  virtual int release(std::byte* address, std::size_t size_bytes, bool keep_address) noexcept = 0;

  /// Maps a peer's memory. Only ipc::Mapping calls this and unmap.
  virtual std::byte* map(const Exported& exported, std::size_t size_bytes) = 0;
  /// @return 0 or errno
  virtual int unmap(std::byte* address, std::size_t size_bytes) noexcept = 0;

  /// Copies between any two addresses that device or host know, and waits for it.
  virtual void copy(void* dst, const void* src, std::size_t size_bytes) = 0;

  /// Shows launches what the host has written to memory of kind control; a new generation starts
  /// with fresh counters. No launch may be under way.
  virtual void publish(const ControlBlock& control) = 0;
  /// The gate alone. Thread-safe; launches that have passed the gate go on.
  virtual void publish_gate(const ControlBlock& control) noexcept = 0;

  /// What launch() will take. Of `args` the pointers and slots do not matter.
  virtual LaunchGrid grid_of(const AllReduceArgs& args) const = 0;
  /// Runs an all-reduce, in the order of `stream`. How it ended is in the HostWords.
  virtual void launch(const AllReduceArgs& args, void* stream) = 0;
  /// Reads and answers through mappings with the loads and stores of the kernels; waits for it.
  virtual void probe(std::span<const ProbeItem> items, int rank) = 0;

  /// Waits for the work of `stream`. @return false at the deadline
  virtual bool drain(void* stream, std::chrono::steady_clock::time_point deadline) = 0;
  /// Waits for all work of this process on the device. @return false at the deadline
  virtual bool drain_all(std::chrono::steady_clock::time_point deadline) = 0;

  /// Launches on `stream` are recorded instead of run until end_capture.
  /// @param baked_pointers for measuring: the launches hold the peers' pointers, of this generation
  /// @return false: this device records nothing, the caller keeps the launches
  virtual bool begin_capture(void* stream, bool baked_pointers) = 0;
  virtual std::unique_ptr<CapturedLaunches> end_capture(void* stream) = 0;
};

/// @param isa "auto", "avx512", "avx2" or "plain"
std::unique_ptr<Device> make_host_device(const std::string& isa);
struct CudaOptions {
  std::string ipc = "auto";  ///< or "descriptor", "legacy"
  /// A launch may start while the one in front of it ends, where the device can.
  bool programmatic_launch = true;
  /// Most blocks of a launch; 0: what the device takes. Protocol: the same on all ranks.
  std::uint32_t max_blocks = 0;
};
/// @throws Error{unsupported} when this build has no CUDA backend, or the machine no device
std::unique_ptr<Device> make_cuda_device(int ordinal, const CudaOptions& options);

}  // namespace librun
