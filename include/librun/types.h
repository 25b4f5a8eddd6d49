// SPDX-License-Identifier: Apache-2.0
// The constants and plain structs of the C API.
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Result of every call. Only LIBRUN_OK and LIBRUN_ALREADY_THERE are successes. */
typedef enum librun_status {
  LIBRUN_OK = 0,
  /** Success: suspend of a suspended, or resume of an active communicator. Nothing was done. */
  LIBRUN_ALREADY_THERE = 1,
  /** Refused by all ranks before anything was touched; the state is unchanged, try again later. */
  LIBRUN_REJECTED = 2,
  LIBRUN_INVALID_ARGUMENT = 3,
  /** The communicator is suspended or closed, or the call does not fit its state. */
  LIBRUN_INVALID_STATE = 4,
  /** The communicator failed earlier. Terminal; the text holds the first cause. */
  LIBRUN_FAILED = 5,
  LIBRUN_TIMEOUT = 6,
  LIBRUN_PEER_LOST = 7,
  LIBRUN_UNSUPPORTED = 8,
  /** An operating system call failed. */
  LIBRUN_SYSTEM = 9,
  LIBRUN_CUDA = 10,
  LIBRUN_MPI = 11
} librun_status_t;

typedef enum librun_state {
  LIBRUN_ACTIVE = 0,
  LIBRUN_SUSPENDED = 1,
  LIBRUN_FAILED_STATE = 2,
  LIBRUN_CLOSED = 3
} librun_state_t;

typedef enum librun_dtype {
  LIBRUN_FLOAT16 = 0,
  LIBRUN_BFLOAT16 = 1,
  LIBRUN_FLOAT32 = 2,
  LIBRUN_FLOAT64 = 3,
  LIBRUN_INT8 = 4,
  LIBRUN_UINT8 = 5,
  LIBRUN_INT32 = 6,
  LIBRUN_UINT32 = 7,
  LIBRUN_INT64 = 8,
  LIBRUN_UINT64 = 9,
  LIBRUN_DTYPE_COUNT = 10
} librun_dtype_t;

typedef enum librun_op {
  LIBRUN_SUM = 0,
  LIBRUN_PROD = 1,
  LIBRUN_MIN = 2,
  LIBRUN_MAX = 3,
  LIBRUN_OP_COUNT = 4
} librun_op_t;

typedef enum librun_device {
  LIBRUN_DEVICE_UNSET = 0,
  LIBRUN_DEVICE_AUTO = 1,
  LIBRUN_DEVICE_HOST = 2,
  LIBRUN_DEVICE_CUDA = 3
} librun_device_t;

typedef enum librun_algo {
  LIBRUN_ALGO_AUTO = 0,
  LIBRUN_ALGO_LL = 1,
  LIBRUN_ALGO_ONE_SHOT = 2,
  LIBRUN_ALGO_TWO_SHOT = 3,
  LIBRUN_ALGO_ZERO_COPY = 4,
  LIBRUN_ALGO_STEPPED = 5,
  LIBRUN_ALGO_COUNT = 6
} librun_algo_t;

/** Most ranks of one communicator. */
#define LIBRUN_MAX_WORLD 64
/** Most buffers registered with one communicator at a time. */
#define LIBRUN_MAX_BUFFERS 256
/** Largest count of one call: 2^40 elements. */
#define LIBRUN_MAX_COUNT ((size_t)1 << 40)

/** Settings of one communicator. Fill it with librun_config_init, then change what you need. Zero
 *  (and -1 for cuda_device) means unset: the LIBRUN_* variable applies, then the default. */
typedef struct librun_config {
  size_t struct_size;     /**< sizeof(librun_config_t) of the caller; set by librun_config_init */
  librun_device_t device; /**< where the data is */
  int cuda_device;        /**< CUDA ordinal; -1: the device that is current at creation */
  librun_algo_t algo;     /**< LIBRUN_ALGO_AUTO: chosen for each call */
  int timeout_ms;         /**< deadline of every wait, in milliseconds */
  size_t arena_bytes;     /**< shared memory of each rank, in bytes */
} librun_config_t;

/** A snapshot of one communicator. Set struct_size before librun_comm_stats. */
typedef struct librun_stats {
  size_t struct_size;
  librun_state_t state;
  int rank;
  int world;
  uint64_t generation;         /**< resumes so far */
  uint64_t calls;              /**< all-reduces started by this rank, graph replays included */
  uint64_t open_mappings;      /**< peer segments mapped here; 0 while suspended */
  uint64_t mapped_bytes;       /**< their bytes */
  uint64_t segments;           /**< own exportable segments that hold memory */
  uint64_t segment_bytes;      /**< their bytes */
  uint64_t registered_buffers; /**< live librun_register handles */
  uint64_t staged_slots;       /**< of these, how many go through staging */
  uint64_t slots_used;
  uint64_t slots_total;
  uint64_t suspends; /**< suspends completed */
  uint64_t last_suspend_us;
  uint64_t last_resume_us;
  uint64_t lost_slots; /**< of the staged ones, those that were mapped until a resume found that a
                            checkpoint had made it impossible */
} librun_stats_t;

/** What an all-reduce takes. Set struct_size before librun_comm_plan. */
typedef struct librun_plan {
  size_t struct_size;
  librun_algo_t algo;
  int blocks;      /**< thread blocks of its launch on a GPU; 0 on the host */
  int threads;     /**< of each block */
  int tuned;       /**< 1: a table of LIBRUN_TUNING chose the algorithm */
  int shared;      /**< 1: ranks of the communicator share a GPU, or cores */
  char device[64]; /**< what tables of LIBRUN_TUNING call the device */
} librun_plan_t;

/** One phase of the last transition and how long it took on this rank. */
typedef struct librun_phase {
  char name[24];
  uint64_t elapsed_us;
} librun_phase_t;

typedef enum librun_transition {
  LIBRUN_TRANSITION_CREATE = 0,
  LIBRUN_TRANSITION_SUSPEND = 1,
  LIBRUN_TRANSITION_RESUME = 2
} librun_transition_t;

/** One open mapping of a peer's segment. */
typedef struct librun_mapping {
  int rank;         /**< the peer that owns the memory */
  uint64_t segment; /**< 0: its arena; otherwise the id of a librun_malloc allocation */
  void* address;    /**< where it is mapped in this process */
  size_t size_bytes;
} librun_mapping_t;

/** The last error of the calling thread. Set struct_size before librun_last_error_info. */
typedef struct librun_error_info {
  size_t struct_size;
  librun_status_t status;
  int rank; /**< the first rank that failed, -1 when unknown */
  char text[1024];
  char hint[512];
} librun_error_info_t;

typedef struct librun_comm* librun_comm_t;
typedef struct librun_buffer* librun_buffer_t;
typedef struct librun_graph* librun_graph_t;
