// SPDX-License-Identifier: Apache-2.0
// The C API: communicators, calls, graphs and transitions.
#include "librun/librun.h"
#include "runtime/communicator.hpp"
#include "runtime/guard.hpp"
#include "runtime/handles.hpp"
#include "runtime/suspend_request.hpp"

using librun::Communicator;
using librun::capi::deref;
using librun::capi::guard;

namespace {

/// A recording and the communicator it belongs to, which may be gone before it.
struct Graph {
  std::weak_ptr<Communicator> communicator;
  librun::Recording recording;
};

using Comms = librun::HandleTable<librun_comm_t, Communicator, 1024>;
using Graphs = librun::HandleTable<librun_graph_t, Graph, 65536>;

Communicator* comm_of(librun_comm_t comm) {
  if (Communicator* communicator = Comms::instance().find(comm)) return communicator;
  throw librun::Error(LIBRUN_INVALID_ARGUMENT, -1, "not a handle of a communicator.",
                      "pass what librun_comm_create gave, before librun_comm_destroy.");
}

Graph* graph_of(librun_graph_t graph) {
  if (Graph* found = Graphs::instance().find(graph)) return found;
  throw librun::Error(LIBRUN_INVALID_ARGUMENT, -1, "not a handle of a graph.",
                      "pass what librun_graph_end gave, before librun_graph_destroy.");
}

template <class H>
H handle_or_full(H handle) {
  if (handle) return handle;
  throw librun::Error(LIBRUN_UNSUPPORTED, -1, "this process has too many handles of this kind.",
                      "destroy those that are not needed.");
}

/// Reads as much as the caller's version of the struct has.
librun_config_t config_of(const librun_config_t* config) {
  librun_config_t full{};
  full.cuda_device = -1;
  if (!config) return full;
  if (config->struct_size < sizeof(size_t) || config->struct_size > 4096)
    librun::capi::reject_argument("librun_config_t.struct_size is " +
                                  std::to_string(config->struct_size) +
                                  ": call librun_config_init first.");
  std::memcpy(&full, config, std::min(config->struct_size, sizeof(full)));
  return full;
}

int timeout_of(int timeout_ms) {
  if (timeout_ms == 0 || timeout_ms < -1)
    librun::capi::reject_argument("timeout_ms is " + std::to_string(timeout_ms) +
                                  ": it takes 1 up, or -1 for the configured one.");
  return timeout_ms;
}

}  // namespace

extern "C" {

librun_status_t librun_config_init(librun_config_t* config) {
  return guard([&] {
    librun_config_t fresh{};
    fresh.struct_size = sizeof(fresh);
    fresh.cuda_device = -1;
    deref(config, "config") = fresh;
  });
}

librun_status_t librun_comm_create(MPI_Comm comm, const librun_config_t* config,
                                   librun_comm_t* out) {
  return guard([&] {
    const auto checked_config = [&] {
      deref(out, "out");
      return config_of(config);
    };
    *out = handle_or_full(Comms::instance().insert(Communicator::create(comm, checked_config)));
  });
}

librun_status_t librun_comm_close(librun_comm_t comm) {
  return guard([&] { comm_of(comm)->close(); });
}

librun_status_t librun_comm_destroy(librun_comm_t comm) {
  return guard([&] {
    comm_of(comm);
    if (const auto communicator = Comms::instance().take(comm)) communicator->abandon();
  });
}

librun_status_t librun_all_reduce(librun_comm_t comm, const void* send, void* recv, size_t count,
                                  librun_dtype_t dtype, librun_op_t op, void* stream) {
  return guard([&] { comm_of(comm)->all_reduce({send, recv, count, dtype, op}, stream); });
}

librun_status_t librun_comm_plan(librun_comm_t comm, size_t count, librun_dtype_t dtype,
                                 librun_op_t op, librun_plan_t* out) {
  return guard([&] {
    librun::capi::give_struct(deref(out, "out"), "librun_plan_t",
                              [&] { return comm_of(comm)->plan(count, dtype, op); });
  });
}

void librun_request_suspend(void) { librun::request_suspend(); }

librun_status_t librun_suspend_requested(librun_comm_t comm, int* requested) {
  return guard([&] {
    int& answer = deref(requested, "requested");
    answer = comm_of(comm)->suspend_requested() ? 1 : 0;
  });
}

librun_status_t librun_synchronize(librun_comm_t comm, void* stream) {
  return guard([&] { comm_of(comm)->synchronize(stream); });
}

librun_status_t librun_register(librun_comm_t comm, void* ptr, size_t bytes, librun_buffer_t* out) {
  return guard([&] {
    deref(out, "out");
    *out = reinterpret_cast<librun_buffer_t>(comm_of(comm)->register_buffer(ptr, bytes));
  });
}

librun_status_t librun_unregister(librun_comm_t comm, librun_buffer_t buffer) {
  return guard([&] { comm_of(comm)->unregister_buffer(reinterpret_cast<std::uintptr_t>(buffer)); });
}

librun_status_t librun_graph_begin(librun_comm_t comm, void* stream) {
  return guard([&] { comm_of(comm)->begin_capture(stream); });
}

librun_status_t librun_graph_end(librun_comm_t comm, void* stream, librun_graph_t* out) {
  return guard([&] {
    deref(out, "out");
    Communicator* communicator = comm_of(comm);
    *out = handle_or_full(Graphs::instance().insert(std::make_shared<Graph>(
        Graph{communicator->weak_from_this(), communicator->end_capture(stream)})));
  });
}

librun_status_t librun_graph_launch(librun_graph_t graph, void* stream) {
  return guard([&] {
    const Graph* found = graph_of(graph);
    const auto communicator = found->communicator.lock();
    if (!communicator)
      throw librun::Error(LIBRUN_INVALID_STATE, -1, "the graph's communicator was destroyed.");
    communicator->replay(found->recording, stream);
  });
}

librun_status_t librun_graph_destroy(librun_graph_t graph) {
  return guard([&] {
    graph_of(graph);
    Graphs::instance().take(graph);
  });
}

librun_status_t librun_suspend(librun_comm_t comm, int timeout_ms) {
  return guard([&] { return comm_of(comm)->suspend(timeout_of(timeout_ms)); });
}

librun_status_t librun_resume(librun_comm_t comm, int timeout_ms) {
  return guard([&] { return comm_of(comm)->resume(timeout_of(timeout_ms)); });
}

librun_status_t librun_resume_on(librun_comm_t comm, MPI_Comm mpi, int timeout_ms) {
  return guard([&] {
    if (mpi == MPI_COMM_NULL)
      librun::capi::reject_argument("the MPI communicator is MPI_COMM_NULL.");
    return comm_of(comm)->resume(timeout_of(timeout_ms), mpi);
  });
}

librun_status_t librun_suspend_all(int timeout_ms) {
  return guard([&] { return Communicator::suspend_all(timeout_of(timeout_ms)); });
}

librun_status_t librun_resume_all(int timeout_ms) {
  return guard([&] { return Communicator::resume_all(timeout_of(timeout_ms)); });
}

librun_status_t librun_abort(librun_comm_t comm, const char* reason) {
  return guard([&] { comm_of(comm)->abort(reason ? reason : "no reason given"); });
}

librun_status_t librun_check(librun_comm_t comm) {
  return guard([&] { comm_of(comm)->check(); });
}

librun_status_t librun_malloc(librun_comm_t comm, size_t bytes, void** out) {
  return guard([&] {
    deref(out, "out");
    *out = comm_of(comm)->allocate(bytes);
  });
}

librun_status_t librun_free(librun_comm_t comm, void* ptr) {
  return guard([&] { comm_of(comm)->deallocate(ptr); });
}

librun_status_t librun_comm_state(librun_comm_t comm, librun_state_t* out) {
  return guard([&] {
    deref(out, "out");
    *out = comm_of(comm)->state();
  });
}

librun_status_t librun_comm_stats(librun_comm_t comm, librun_stats_t* out) {
  return guard([&] {
    librun::capi::give_struct(deref(out, "out"), "librun_stats_t",
                              [&] { return comm_of(comm)->stats(); });
  });
}

librun_status_t librun_comm_phases(librun_comm_t comm, librun_transition_t transition,
                                   librun_phase_t* out, int capacity, int* count) {
  return guard([&] {
    deref(count, "count");
    if (transition < LIBRUN_TRANSITION_CREATE || transition > LIBRUN_TRANSITION_RESUME)
      librun::capi::reject_argument("the transition does not exist.");
    librun::capi::copy_out(comm_of(comm)->phases(transition), out, capacity, *count);
  });
}

librun_status_t librun_comm_mappings(librun_comm_t comm, librun_mapping_t* out, int capacity,
                                     int* count) {
  return guard([&] {
    deref(count, "count");
    librun::capi::copy_out(comm_of(comm)->mappings(), out, capacity, *count);
  });
}

}  // extern "C"
