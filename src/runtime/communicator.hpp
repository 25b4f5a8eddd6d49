// SPDX-License-Identifier: Apache-2.0
// One communicator of one rank: owns everything it needs, and its state.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ipc/exchange.hpp"
#include "ipc/link.hpp"
#include "ipc/link_setup.hpp"
#include "ipc/peer_table.hpp"
#include "ipc/segment.hpp"
#include "kernels/device.hpp"
#include "runtime/captures.hpp"
#include "runtime/cause.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/lifecycle.hpp"
#include "runtime/monitor.hpp"
#include "runtime/phases.hpp"
#include "runtime/registry.hpp"
#include "runtime/select.hpp"
#include "runtime/settings.hpp"

namespace librun {

/// What a graph replays; nothing in it goes stale.
struct Recording {
  std::vector<AllReduceArgs> launches;            ///< made one by one, unless
  std::shared_ptr<CapturedLaunches> of_device{};  ///< the device has recorded them
};

/// The arguments of librun_all_reduce, not yet looked at.
struct CallArguments {
  const void* send;
  void* recv;
  std::size_t count;
  librun_dtype_t dtype;
  librun_op_t op;
};

/// Thread-safe: calls are taken one at a time, but for abort, state, stats, phases and mappings.
/// Every function throws Error; the collective ones throw the same on all ranks.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// Collective. What `config` throws on one rank fails the creation on all.
  static std::shared_ptr<Communicator> create(MPI_Comm comm,
                                              const std::function<librun_config_t()>& config);
  ~Communicator();

  void all_reduce(const CallArguments& call, void* stream);
  void synchronize(void* stream);
  librun_plan_t plan(std::size_t count, librun_dtype_t dtype, librun_op_t op);
  /// Whether any rank has been asked for a suspend since the last. Collective.
  bool suspend_requested();

  std::uint64_t register_buffer(void* address, std::size_t size_bytes);
  void unregister_buffer(std::uint64_t id);
  void* allocate(std::size_t size_bytes);
  void deallocate(void* address);

  void begin_capture(void* stream);
  Recording end_capture(void* stream);
  void replay(const Recording& recording, void* stream);

  /// @return false: already there. `timeout_ms` below 0: the configured one
  bool suspend(int timeout_ms);
  /// @param mpi MPI_COMM_NULL: the one it has
  bool resume(int timeout_ms, MPI_Comm mpi = MPI_COMM_NULL);
  static bool suspend_all(int timeout_ms);
  static bool resume_all(int timeout_ms);
  void close();
  /// What the end of a handle does: local, bounded. Peers that are active are told.
  void abandon() noexcept;

  void abort(const std::string& reason);
  void check();

  librun_state_t state() const;
  librun_stats_t stats() const;
  std::vector<librun_phase_t> phases(librun_transition_t transition) const;
  std::vector<librun_mapping_t> mappings() const;

 private:
  Communicator(const Settings& settings, std::shared_ptr<Device> device);
  static std::shared_ptr<Communicator> make(const Settings& settings, int world);
  static std::vector<std::shared_ptr<Communicator>> alive();

  // communicator.cpp
  std::unique_lock<std::mutex> enter(Call call);
  Verdict verdict(Call call) const;
  [[noreturn]] void refuse(Verdict verdict, Call call);
  [[noreturn]] void throw_failure();
  void fail(const Error& error, std::optional<Request> tell = std::nullopt) noexcept;
  void tell_late_ranks_once(Request request, const Error& error) noexcept;
  void check_process() const;
  void throw_if_failed() const;
  void enter_state(librun_state_t state);
  void replace_links(ipc::Links links) noexcept;
  void send_abort(const Error& error) noexcept;
  void on_peer_event(const ipc::PeerEvent& event) noexcept;
  void set_gate(std::uint32_t gate);
  void raise_abort();
  void drain_uncaptured(ipc::Deadline deadline);
  void drain_or_reject(ipc::Deadline deadline);
  void drain_or_fail(ipc::Deadline deadline);
  void leak_device_state() noexcept;
  ipc::Watch watch();
  ipc::Deadline deadline(int timeout_ms) const;
  void refresh_board();
  void show_status() noexcept;
  std::string who() const { return "rank " + std::to_string(rank()); }
  int rank() const { return exchange_.rank(); }
  int world() const { return exchange_.world(); }
  int late_rank() const {
    return static_cast<int>(words_->fatal != 0 ? words_->fatal_rank : words_->rank);
  }

  /// Shows that a transition is under way, from before anything is touched until it has ended,
  /// however it did. Called with mutex_ held, or before anybody else knows the communicator.
  class UnderWay {
   public:
    UnderWay(Communicator& communicator, const char* transition)
        : communicator_(communicator),
          before_(std::exchange(communicator.transition_, transition)) {
      communicator_.show_status();
    }
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    Communicator& communicator_;
    const char* before_;
  };

  // hello.cpp
  struct Hello;
  Hello make_hello(const ipc::Listener& listener) const;
  void learn_from(const std::vector<Hello>& hellos);

  // bring_up.cpp
  void bring_up(Phases& phases, bool selftest);
  void pass_descriptors(Phases& phases);
  void send_segment(const ipc::Segment& segment);
  bool map_next(int peer, const BufferPlace& place, std::size_t n_users, ipc::Deadline deadline);
  void stage_lost(const Ballots& opened);
  void release_places(const Buffer& buffer);
  void write_table();
  void prove_mappings(Phases& phases);
  void run_selftest(ipc::Deadline deadline);
  void become_active();
  void start_monitor();

  /// Runs collective work; whatever escapes it, but a rejection, is terminal.
  template <class Work>
  auto guarded(Request request, Work&& work) {
    try {
      return work();
    } catch (const Rejection&) {
      throw;
    } catch (const Error& error) {
      fail(error, request);
      failure_.take_report();
      throw;
    }
  }

  // transitions.cpp
  bool agree_on_state(Phases& phases, librun_state_t already, const Error* refused = nullptr);
  void take_down(Phases& phases);
  bool suspend_locked(int timeout_ms, const Error* refused = nullptr);
  bool resume_locked(int timeout_ms, MPI_Comm mpi);
  void adopt(MPI_Comm mpi, ipc::Deadline deadline);
  void release_local(bool agreed) noexcept;
  bool quiesce() noexcept;

  // call.cpp
  AllReduceArgs make_args(const CallArguments& call) const;
  librun_algo_t algo_for(std::size_t size_bytes, librun_dtype_t dtype) const;
  Reject inspect(const CallArguments& call) const;
  void launch(const AllReduceArgs& args, void* stream);
  void run_stepped(const AllReduceArgs& args, void* stream);
  void run_half(const AllReduceArgs& half, void* stream, ipc::Deadline deadline);
  void throw_outcome();
  void drop_capture() noexcept;
  [[noreturn]] void throw_mismatch(std::vector<Announcement> calls, std::uint32_t odd_rank) const;

  // registration.cpp
  void agree_on_places(Buffer& buffer, bool has_slot);
  void map_places(Buffer& buffer, Phases& phases);
  void write_slot(int slot);

  const Settings settings_;
  const std::uint64_t process_;  ///< changes in a forked child
  std::mutex mutex_;             ///< one call at a time
  std::atomic<librun_state_t> state_{LIBRUN_CLOSED};
  FailureCell failure_;
  bool late_ranks_told_ = false;
  std::uint64_t caught_told_ = 0;  ///< of HostWords::caught, what check() has told

  std::shared_ptr<Device> device_;
  DeviceMemory<HostWords> words_;
  DeviceMemory<ControlBlock> control_;
  std::unique_ptr<ipc::Segment> arena_;
  ipc::Exchange exchange_;
  ipc::Links links_;
  std::mutex links_mutex_;  ///< an abort may come from any thread while links_ is replaced
  ipc::PeerTable peers_;
  std::vector<DeviceMemory<std::byte>> decoys_;  ///< what a corrupt fault maps instead of a peer
  Registry registry_;
  /// An open capture.
  struct Capture {
    Recording recording;
    bool on_device;
    void* stream;
    captures::Counted counted;  ///< where it is on the device; until it has ended there
  };
  std::optional<Capture> capture_;
  bool has_baked_pointers_ = false;      ///< in a graph: no suspend any more
  std::uint64_t requests_answered_ = 0;  ///< of suspend_requests()
  DeviceInfo device_info_;
  std::string device_id_;  ///< as of the last bring-up
  const std::vector<std::string> obstacles_;
  const char* transition_ = "";
  std::optional<Selector> selector_;  ///< as of the last bring-up
  int ranks_on_device_ = 1;           ///< the most that share one
  std::uint64_t identity_ = 0;        ///< random, the same on all ranks, for life
  std::uint64_t next_buffer_id_ = 1;
  std::uint64_t generation_ = 0;
  std::atomic<std::uint64_t> calls_{0};
  Monitor monitor_;  ///< last: its thread uses the members above

  /// What the getters read without waiting for a call.
  struct Board {
    librun_stats_t stats{};
    std::vector<librun_phase_t> phases[3];
    std::vector<librun_mapping_t> mappings;
  };
  mutable std::mutex board_mutex_;
  Board board_;
};

}  // namespace librun
