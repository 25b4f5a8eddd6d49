// SPDX-License-Identifier: Apache-2.0
// The C++ API: owning types over the C API, header only, so that no C++ symbol crosses the library.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "librun/error.hpp"
#include "librun/librun.h"

namespace librun {

namespace detail {

[[noreturn]] inline void throw_last_error(librun_status_t status) {
  librun_error_info_t info{};
  info.struct_size = sizeof(info);
  if (librun_last_error_info(&info) != LIBRUN_OK || info.status != status)
    throw Error(status, -1, librun_status_string(status));
  throw Error(status, info.rank, info.text, info.hint);
}

/// Returns true when something was done, false for LIBRUN_ALREADY_THERE; throws otherwise.
inline bool check(librun_status_t status) {
  if (status == LIBRUN_OK) return true;
  if (status == LIBRUN_ALREADY_THERE) return false;
  throw_last_error(status);
}

inline int to_ms(std::optional<std::chrono::milliseconds> timeout) {
  return timeout ? static_cast<int>(timeout->count()) : -1;
}

/// Move-only owner of a C handle; `Destroy` is called once.
template <class H, librun_status_t (*Destroy)(H)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(H handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, H{})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, H{});
    }
    return *this;
  }
  ~Handle() { reset(); }
  void reset() noexcept {
    if (handle_ != H{}) Destroy(std::exchange(handle_, H{}));
  }
  H get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != H{}; }

 private:
  H handle_{};
};

}  // namespace detail

/// The librun type of a C++ arithmetic type.
template <class T>
constexpr librun_dtype_t dtype_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                "no librun type for this C++ type: pass a librun_dtype_t");
  if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "float and double are supported");
    return sizeof(T) == 4 ? LIBRUN_FLOAT32 : LIBRUN_FLOAT64;
  } else {
    static_assert(sizeof(T) != 2, "no librun type for 16-bit integers");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? LIBRUN_INT8 : LIBRUN_UINT8;
    if constexpr (sizeof(T) == 4) return is_signed ? LIBRUN_INT32 : LIBRUN_UINT32;
    return is_signed ? LIBRUN_INT64 : LIBRUN_UINT64;
  }
}

/// A recorded list of all-reduces. Moved-from: empty.
class Graph {
 public:
  Graph() = default;
  explicit Graph(librun_graph_t handle) noexcept : handle_(handle) {}
  /// Runs what was recorded. All ranks must launch. @throws Error
  void launch(void* stream = nullptr) { detail::check(librun_graph_launch(handle_.get(), stream)); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<librun_graph_t, librun_graph_destroy> handle_;
};

/// Settings: librun_config_init is already done.
struct Config : librun_config_t {
  Config() : librun_config_t{} { detail::check(librun_config_init(this)); }
};

/// Owns a communicator. The destructor is local (librun_comm_destroy): call close() on all ranks
/// first. Moved-from: empty. Threads: as the C API.
class Communicator {
 public:
  Communicator() = default;
  /// Collective. @throws Error on all ranks together
  explicit Communicator(MPI_Comm comm, const librun_config_t& config = Config{}) {
    librun_comm_t handle{};
    detail::check(librun_comm_create(comm, &config, &handle));
    handle_ = detail::Handle<librun_comm_t, librun_comm_destroy>(handle);
  }

  librun_comm_t get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

  /// Collective while healthy. @throws Error
  void close() { detail::check(librun_comm_close(get())); }

  /// Collective; `count` elements each. @throws Error
  void all_reduce(const void* send, void* recv, std::size_t count, librun_dtype_t dtype,
                  librun_op_t op = LIBRUN_SUM, void* stream = nullptr) {
    detail::check(librun_all_reduce(get(), send, recv, count, dtype, op, stream));
  }
  template <class T>
  void all_reduce(const T* send, T* recv, std::size_t count, librun_op_t op = LIBRUN_SUM,
                  void* stream = nullptr) {
    all_reduce(send, recv, count, dtype_of<T>(), op, stream);
  }
  /// One value, in place. Collective. @throws Error
  template <class T>
  T all_reduce(T value, librun_op_t op = LIBRUN_SUM) {
    all_reduce(&value, &value, 1, dtype_of<T>(), op);
    return value;
  }

  /// Whether to suspend now; see librun_suspend_requested. Collective.
  bool suspend_requested() {
    int requested = 0;
    detail::check(librun_suspend_requested(get(), &requested));
    return requested != 0;
  }
  librun_plan_t plan(std::size_t count, librun_dtype_t dtype, librun_op_t op = LIBRUN_SUM) const {
    librun_plan_t plan{};
    plan.struct_size = sizeof(plan);
    detail::check(librun_comm_plan(get(), count, dtype, op, &plan));
    return plan;
  }

  void synchronize(void* stream = nullptr) { detail::check(librun_synchronize(get(), stream)); }

  /// Collective. @throws Error
  librun_buffer_t register_buffer(void* ptr, std::size_t size_bytes) {
    librun_buffer_t buffer{};
    detail::check(librun_register(get(), ptr, size_bytes, &buffer));
    return buffer;
  }
  void unregister_buffer(librun_buffer_t buffer) {
    detail::check(librun_unregister(get(), buffer));
  }

  void begin_graph(void* stream = nullptr) { detail::check(librun_graph_begin(get(), stream)); }
  Graph end_graph(void* stream = nullptr) {
    librun_graph_t graph{};
    detail::check(librun_graph_end(get(), stream, &graph));
    return Graph(graph);
  }

  using Timeout = std::optional<std::chrono::milliseconds>;
  /// Collective. @return false when the communicator was suspended already @throws Error
  bool suspend(Timeout timeout = {}) {
    return detail::check(librun_suspend(get(), detail::to_ms(timeout)));
  }
  /// Collective. @return false when the communicator was active already @throws Error
  bool resume(Timeout timeout = {}) {
    return detail::check(librun_resume(get(), detail::to_ms(timeout)));
  }
  bool resume_on(MPI_Comm mpi, Timeout timeout = {}) {
    return detail::check(librun_resume_on(get(), mpi, detail::to_ms(timeout)));
  }

  void abort(const std::string& reason) { detail::check(librun_abort(get(), reason.c_str())); }
  void check() { detail::check(librun_check(get())); }

  librun_state_t state() const {
    librun_state_t state{};
    detail::check(librun_comm_state(get(), &state));
    return state;
  }
  librun_stats_t stats() const {
    librun_stats_t stats{};
    stats.struct_size = sizeof(stats);
    detail::check(librun_comm_stats(get(), &stats));
    return stats;
  }
  std::vector<librun_phase_t> phases(librun_transition_t transition) const {
    int count = 0;
    detail::check(librun_comm_phases(get(), transition, nullptr, 0, &count));
    std::vector<librun_phase_t> phases(static_cast<std::size_t>(count));
    detail::check(librun_comm_phases(get(), transition, phases.data(), count, &count));
    phases.resize(static_cast<std::size_t>(std::min<int>(count, static_cast<int>(phases.size()))));
    return phases;
  }
  std::vector<librun_mapping_t> mappings() const {
    int count = 0;
    detail::check(librun_comm_mappings(get(), nullptr, 0, &count));
    std::vector<librun_mapping_t> mappings(static_cast<std::size_t>(count));
    detail::check(librun_comm_mappings(get(), mappings.data(), count, &count));
    mappings.resize(
        static_cast<std::size_t>(std::min<int>(count, static_cast<int>(mappings.size()))));
    return mappings;
  }

  void* allocate(std::size_t size_bytes) {
    void* ptr = nullptr;
    detail::check(librun_malloc(get(), size_bytes, &ptr));
    return ptr;
  }
  void deallocate(void* ptr) { detail::check(librun_free(get(), ptr)); }

 private:
  detail::Handle<librun_comm_t, librun_comm_destroy> handle_;
};

/// Every communicator of this process, one transition. Collective. @throws Error
inline bool suspend_all(Communicator::Timeout timeout = {}) {
  return detail::check(librun_suspend_all(detail::to_ms(timeout)));
}
inline bool resume_all(Communicator::Timeout timeout = {}) {
  return detail::check(librun_resume_all(detail::to_ms(timeout)));
}

namespace detail {

inline std::vector<std::string> lines_of(librun_status_t (*ask)(char*, std::size_t, int*)) {
  std::string text(65536, '\0');
  int count = 0;
  check(ask(text.data(), text.size(), &count));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; static_cast<int>(lines.size()) < count;) {
    const std::size_t end = text.find_first_of(std::string("\n\0", 2), begin);
    lines.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos || text[end] == '\0') break;
    begin = end + 1;
  }
  return lines;
}

}  // namespace detail

/// From a signal handler, say: see librun_request_suspend.
inline void request_suspend() noexcept { librun_request_suspend(); }

/// What would make a checkpoint of this process fail or never be restored, a line each.
inline std::vector<std::string> checkpoint_blockers() {
  return detail::lines_of(librun_checkpoint_blockers);
}
/// What a checkpoint changes for good without being hindered by it, a line each.
inline std::vector<std::string> checkpoint_notes() {
  return detail::lines_of(librun_checkpoint_notes);
}

}  // namespace librun
