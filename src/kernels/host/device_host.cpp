// SPDX-License-Identifier: Apache-2.0
// The host backend: memfd memory, and launches that run in the calling thread.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "kernels/device.hpp"
#include "kernels/dtype.hpp"
#include "kernels/fault.hpp"
#include "kernels/host/bodies.hpp"
#include "kernels/host/slices.hpp"
#include "librun/error.hpp"

namespace librun {
namespace {

[[noreturn]] void throw_errno(const char* call, std::size_t size_bytes, const char* hint) {
  const int error = errno;
  throw Error(LIBRUN_SYSTEM, -1,
              "cannot get " + std::to_string(size_bytes) + " bytes of memory (" + call + ": " +
                  std::strerror(error) + ", " + std::to_string(error) + ").",
              hint);
}

/// True when `fd` holds all these bytes and will go on to: to touch a page of a file that has
/// become shorter ends the process.
bool keeps_its_size(int fd, std::size_t size_bytes) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return ::fstat(fd, &status) == 0 && static_cast<std::size_t>(status.st_size) >= size_bytes &&
         seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(const std::string& isa) : reduce_(host::select_reduce_table(isa)) {}

  DeviceInfo info() const override {
    return {LIBRUN_DEVICE_HOST, "host", "host", false, true, LIBRUN_MAX_WORLD, kMinArenaBytes};
  }
  void check_peer(const std::string& /*id*/) const override {}
  std::vector<std::string> checkpoint_obstacles() const override { return {}; }
  std::size_t default_arena_bytes(int world) const override {
    return arena_bytes_for(world, host::chunk_bytes_for(world));
  }
  ArenaLayout layout_arena(int world, std::size_t arena_bytes,
                           int /*ranks_on_device*/) const override {
    return make_arena_layout(world, arena_bytes);
  }

  LaunchGrid grid_of(const AllReduceArgs& /*args*/) const override { return {}; }

  std::byte* commit(std::byte* address, std::size_t size_bytes, Memory memory) override {
    UniqueFd segment;
    if (memory == Memory::exportable) {
      segment = UniqueFd(::memfd_create("librun", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      if (!segment)
        throw_errno("memfd_create", size_bytes, "check the limit of open files (ulimit -n).");
      // Takes the blocks now: a later first touch would end the process when there are none.
      if (::posix_fallocate(segment.get(), 0, static_cast<off_t>(size_bytes)) != 0) {
        errno = ENOMEM;
        throw_errno("posix_fallocate", size_bytes, "free memory, or set LIBRUN_ARENA_BYTES lower.");
      }
      if (::fcntl(segment.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        throw_errno("fcntl(F_ADD_SEALS)", size_bytes, "librun needs Linux 3.17 or later.");
    }
    const int flags =
        (segment ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | (address ? MAP_FIXED : 0);
    void* mapped = ::mmap(address, size_bytes, PROT_READ | PROT_WRITE, flags, segment.get(), 0);
    if (mapped == MAP_FAILED)
      throw_errno("mmap", size_bytes, "free memory or address space (ulimit -v).");
    auto* committed = static_cast<std::byte*>(mapped);
    if (segment) descriptors_[committed] = std::move(segment);
    return committed;
  }
  Exported export_memory(std::byte* address) override {
    Exported exported{UniqueFd(::fcntl(descriptors_.at(address).get(), F_DUPFD_CLOEXEC, 0)), {}};
    if (!exported.fd) throw_errno("fcntl", 0, "check the limit of open files (ulimit -n).");
    return exported;
  }
  std::optional<Allocation> find_allocation(const void* /*address*/) const override {
    return std::nullopt;
  }

  int release(std::byte* address, std::size_t size_bytes, bool keep_address) noexcept override {
    descriptors_.erase(address);
    if (!keep_address) return ::munmap(address, size_bytes) == 0 ? 0 : errno;
    void* kept = ::mmap(address, size_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return kept == MAP_FAILED ? errno : 0;
  }

  std::byte* map(const Exported& exported, std::size_t size_bytes) override {
    if (!keeps_its_size(exported.fd.get(), size_bytes))
      throw Error(LIBRUN_INVALID_ARGUMENT, -1,
                  "a peer passed a descriptor that is no memory of " + std::to_string(size_bytes) +
                      " bytes of fixed size.",
                  "run the same build of librun on all ranks.");
    void* mapped =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, exported.fd.get(), 0);
    if (mapped == MAP_FAILED)
      throw_errno("mmap", size_bytes, "check the limit of address space (ulimit -v).");
    return static_cast<std::byte*>(mapped);
  }
  int unmap(std::byte* address, std::size_t size_bytes) noexcept override {
    return ::munmap(address, size_bytes) == 0 ? 0 : errno;
  }

  void copy(void* dst, const void* src, std::size_t size_bytes) override {
    std::memcpy(dst, src, size_bytes);
  }

  // Launches read the memory that the host writes.
  void publish(const ControlBlock& /*control*/) override {}
  void publish_gate(const ControlBlock& /*control*/) noexcept override {}

  void launch(const AllReduceArgs& args, void* /*stream*/) override {
    ControlBlock& control = *args.control;
    HostWords& words = *control.words;
    if (host::load_relaxed(control.gate) != kGateOpen) {
      ++words.caught;
      words.outcome = static_cast<std::uint32_t>(Outcome::gate_closed);
      return;
    }
    host::Steps steps(args);
    if (args.reject != Reject::none) return steps.refuse(args.reject);
    if ((args.check || args.body == Body::zero_copy) && !agree_on_call(args, steps)) return;
    if (args.body == Body::announce || args.count == 0) return;
    run(args, steps);
    if constexpr (fault::kEnabled) after_run(args, steps);
  }

  void probe(std::span<const ProbeItem> items, int rank) override {
    for (const ProbeItem& item : items)
      host::store_release(*item.answer, proof_answer(host::load_acquire(*item.question), rank));
  }

  bool drain(void* /*stream*/, std::chrono::steady_clock::time_point /*deadline*/) override {
    return true;
  }
  bool drain_all(std::chrono::steady_clock::time_point /*deadline*/) override { return true; }

  bool begin_capture(void* /*stream*/, bool /*baked_pointers*/) override { return false; }
  std::unique_ptr<CapturedLaunches> end_capture(void* /*stream*/) override { return nullptr; }

 private:
  bool agree_on_call(const AllReduceArgs& args, host::Steps& steps) const {
    const Announcement mine = announcement_of(args, args.control->words->calls);
    if (!steps.announce(mine)) return false;
    if (!args.check) return true;
    for (int peer = 0; peer < steps.world(); ++peer) {
      if (same_call(steps.announced(peer), steps.announced(0))) continue;
      for (int rank = 0; rank < steps.world(); ++rank) {
        const Announcement call = steps.announced(rank);
        std::memcpy(args.control->words->announced[rank], &call, sizeof(call));
      }
      return steps.finish(Outcome::mismatch, peer, Reject::none);
    }
    return true;
  }

  void run(const AllReduceArgs& args, host::Steps& steps) {
    const host::Work work{args, steps, reduce_.fn[args.dtype][args.op], element_bytes(args.dtype),
                          stores_};
    if (args.control->world == 1) {
      if (args.send != args.recv) std::memcpy(args.recv, args.send, work.size_bytes());
      return;
    }
    switch (args.body) {
      case Body::ll:
        return host::run_ll(work);
      case Body::one_shot:
        return host::run_one_shot(work);
      case Body::two_shot:
        return host::run_two_shot(work);
      case Body::zero_copy:
        return host::run_zero_copy(work);
      case Body::stage_publish:
        return host::run_stage_publish(work);
      case Body::stage_reduce:
        return host::run_stage_reduce(work);
      case Body::announce:
        return;
    }
  }

  void after_run(const AllReduceArgs& args, host::Steps& steps) const {
    if (fault::at("after_read", steps.rank()) == fault::Action::fail)
      steps.finish(Outcome::fault, steps.rank(), Reject::none);
    if (fault::at("result", steps.rank()) == fault::Action::corrupt && args.count > 0)
      args.recv[0] ^= std::byte{0x55};
  }

  const host::ReduceTable& reduce_;
  host::StagingStores stores_;
  std::map<std::byte*, UniqueFd> descriptors_;  // of exportable memory, by address
};

}  // namespace

std::unique_ptr<Device> make_host_device(const std::string& isa) {
  return std::make_unique<HostDevice>(isa);
}

}  // namespace librun
