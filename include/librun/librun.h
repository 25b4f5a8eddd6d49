// SPDX-License-Identifier: Apache-2.0
// The C API of librun: an all-reduce for the ranks of one node that can be suspended and resumed.
//
// Every function returns a librun_status_t; outputs are written only on success. A failed call
// leaves its text in librun_last_error(). The library never exits and never prints.
//
// Threads: any function may be called from any thread; calls on one communicator are taken one at a
// time, except librun_abort, librun_comm_state and librun_comm_stats, which never wait for another
// call. Collective calls follow MPI's rule: all ranks, in the same order.
#pragma once

#include <mpi.h>

#include "librun/types.h"
#include "librun/version.h"

#if defined(LIBRUN_BUILDING)
#define LIBRUN_API __attribute__((visibility("default")))
#else
#define LIBRUN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Fills *config with "unset" everywhere and sets struct_size. */
LIBRUN_API librun_status_t librun_config_init(librun_config_t* config);

/** Creates a communicator over the ranks of `comm`, which is duplicated. Collective; all ranks
 *  succeed or fail together. `config` may be NULL. All ranks must be on one node.
 *  @param out handle; end it with librun_comm_close and librun_comm_destroy */
LIBRUN_API librun_status_t librun_comm_create(MPI_Comm comm, const librun_config_t* config,
                                              librun_comm_t* out);

/** Ends the communicator. Collective while healthy; local and bounded after a failure or after
 *  MPI_Finalize. Closing twice is a no-op. */
LIBRUN_API librun_status_t librun_comm_close(librun_comm_t comm);

/** Frees the handle; local and bounded. Without a close before it, active peers are told and fail,
 *  naming this rank. No other thread may use the handle any more. */
LIBRUN_API librun_status_t librun_comm_destroy(librun_comm_t comm);

/** recv[i] = op over all ranks of send[i], in rank order. Collective.
 *  @param send,recv  count elements, aligned to the type; equal pointers mean in place; any other
 *                    overlap is LIBRUN_INVALID_ARGUMENT
 *  @param count      elements, 0 to LIBRUN_MAX_COUNT, equal on all ranks
 *  @param stream     cudaStream_t on CUDA, where the call is ordered on it; ignored on the host,
 *                    where the result is there on return. */
LIBRUN_API librun_status_t librun_all_reduce(librun_comm_t comm, const void* send, void* recv,
                                             size_t count, librun_dtype_t dtype, librun_op_t op,
                                             void* stream);

/** What librun_all_reduce of so many elements takes: the algorithm, by the settings, the tables of
 *  LIBRUN_TUNING and those of librun, and how much of a GPU. The same on all ranks. Local. Buffers
 *  that are not registered take two_shot where it says zero_copy; a world of one only copies. */
LIBRUN_API librun_status_t librun_comm_plan(librun_comm_t comm, size_t count, librun_dtype_t dtype,
                                            librun_op_t op, librun_plan_t* out);

/** Asks for a suspend, for whoever calls librun_suspend_requested next. Async-signal-safe: call it
 *  from the handler of the signal that announces a preemption. One rank is enough. Local. */
LIBRUN_API void librun_request_suspend(void);
/** Whether any rank has been asked since this was called last, or since the communicator became
 * active: what comes while it is suspended has been answered by that. Collective, the same answer
 * on all ranks; one agreement over MPI, some microseconds for each rank: call it once a time step.
 *  @param requested  1 or 0; untouched on error */
LIBRUN_API librun_status_t librun_suspend_requested(librun_comm_t comm, int* requested);

/** Waits for `stream`, with the deadline, and reports what went wrong on the device. Local. */
LIBRUN_API librun_status_t librun_synchronize(librun_comm_t comm, void* stream);

/** Registers [ptr, ptr + bytes) for zero_copy. Collective; bytes equal on all ranks. Memory of
 *  librun_malloc is mapped by the peers, and on CUDA that of cudaMalloc; other memory is accepted,
 * and goes through the arena. It must outlive the registration. */
LIBRUN_API librun_status_t librun_register(librun_comm_t comm, void* ptr, size_t bytes,
                                           librun_buffer_t* out);

/** Returns the slot of a registered buffer. Collective while active, local otherwise. */
LIBRUN_API librun_status_t librun_unregister(librun_comm_t comm, librun_buffer_t buffer);

/** Starts to record the all-reduces of this communicator instead of running them. Local. On a GPU
 *  it waits while another thread waits for the device, as in librun_suspend or librun_free. */
LIBRUN_API librun_status_t librun_graph_begin(librun_comm_t comm, void* stream);
/** Ends the recording, and the stream's capture also where the communicator has failed. Local.
 *  @param out handle; end it with librun_graph_destroy */
LIBRUN_API librun_status_t librun_graph_end(librun_comm_t comm, void* stream, librun_graph_t* out);
/** Runs what was recorded, in order. All ranks must launch. LIBRUN_INVALID_STATE while suspended.
 */
LIBRUN_API librun_status_t librun_graph_launch(librun_graph_t graph, void* stream);
LIBRUN_API librun_status_t librun_graph_destroy(librun_graph_t graph);

/** Closes every mapping of peer memory and gives the arena back. Collective.
 *  @param timeout_ms deadline; -1: the configured one */
LIBRUN_API librun_status_t librun_suspend(librun_comm_t comm, int timeout_ms);
/** Maps fresh memory, proves the mappings and rewrites the table in place. Collective. */
LIBRUN_API librun_status_t librun_resume(librun_comm_t comm, int timeout_ms);
/** The same on another MPI communicator of the same ranks in the same order. */
LIBRUN_API librun_status_t librun_resume_on(librun_comm_t comm, MPI_Comm mpi, int timeout_ms);
/** Suspends, resumes every communicator of this process, in order of creation. Collective. */
LIBRUN_API librun_status_t librun_suspend_all(int timeout_ms);
LIBRUN_API librun_status_t librun_resume_all(int timeout_ms);

/** Fails the communicator on every rank; a waiting call returns. Local, does not wait. */
LIBRUN_API librun_status_t librun_abort(librun_comm_t comm, const char* reason);
/** Reports a failure, or a launch that the closed gate caught (once). Local. */
LIBRUN_API librun_status_t librun_check(librun_comm_t comm);
LIBRUN_API librun_status_t librun_comm_state(librun_comm_t comm, librun_state_t* out);
LIBRUN_API librun_status_t librun_comm_stats(librun_comm_t comm, librun_stats_t* out);

/** Phases of the last create, suspend or resume, in order.
 *  @param out    room for `capacity` records (may be NULL when capacity is 0)
 *  @param count  how many there are */
LIBRUN_API librun_status_t librun_comm_phases(librun_comm_t comm, librun_transition_t transition,
                                              librun_phase_t* out, int capacity, int* count);
/** Peer memory that is mapped now; same rules for out, capacity and count. */
LIBRUN_API librun_status_t librun_comm_mappings(librun_comm_t comm, librun_mapping_t* out,
                                                int capacity, int* count);

/** What would make a checkpoint of this process fail, or succeed and never be restored, right now:
 * a line each. Open mappings of a peer's memory, communicators that are active or in a transition,
 * a GPU that is used through MPS, a driver without the functions. None: go ahead. Any thread, at
 * any time; makes no call of CUDA. Knows nothing of what other libraries have mapped.
 *  @param text  room for text_bytes, always terminated; may be NULL when text_bytes is 0 */
LIBRUN_API librun_status_t librun_checkpoint_blockers(char* text, size_t text_bytes, int* count);
/** What a checkpoint by the driver changes for good, a line each, and does not forbid: registered
 *  memory of cudaMalloc that peers have mapped by a handle cannot be mapped again afterwards. Its
 * slot is staged from the next resume on; results and graphs stay right. The same rules. */
LIBRUN_API librun_status_t librun_checkpoint_notes(char* text, size_t text_bytes, int* count);

/** Zeroed memory that peers can map, page aligned. Local. @param bytes at least 1 */
LIBRUN_API librun_status_t librun_malloc(librun_comm_t comm, size_t bytes, void** out);
/** LIBRUN_REJECTED while the memory is registered. NULL is a no-op. Local. */
LIBRUN_API librun_status_t librun_free(librun_comm_t comm, void* ptr);

LIBRUN_API const char* librun_status_string(librun_status_t status);
/** Text of the last error of this thread, "" if there was none. Valid until the next error. */
LIBRUN_API const char* librun_last_error(void);
LIBRUN_API librun_status_t librun_last_error_info(librun_error_info_t* out);
/** @param out LIBRUN_VERSION_CODE of the library that is loaded */
LIBRUN_API librun_status_t librun_version(int* out);

/** LIBRUN_OK when `device` can be used in this process; otherwise librun_last_error says why not.
 *  @param name room for the device's name, may be NULL */
LIBRUN_API librun_status_t librun_device_probe(librun_device_t device, char* name,
                                               size_t name_bytes);
/** The settings table as JSON: an array of {name, value, source, default, type, unit, group, doc},
 *  where source is "default" or "environment".
 *  @param needed bytes of the whole text with its end; text may be NULL when text_bytes is 0 */
LIBRUN_API librun_status_t librun_settings_json(char* text, size_t text_bytes, size_t* needed);

/** "float32", "sum", "two_shot", ...; NULL for a value that does not exist. */
LIBRUN_API const char* librun_dtype_name(librun_dtype_t dtype);
LIBRUN_API const char* librun_op_name(librun_op_t op);
LIBRUN_API const char* librun_algo_name(librun_algo_t algo);
LIBRUN_API const char* librun_state_name(librun_state_t state);
/** Bytes of one element, 0 for a type that does not exist. */
LIBRUN_API size_t librun_dtype_bytes(librun_dtype_t dtype);

#ifdef __cplusplus
}
#endif
