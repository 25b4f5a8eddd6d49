/* SPDX-License-Identifier: Apache-2.0
 * The C API from C99: every function, with good and with bad arguments. */
#include <stdio.h>
#include <string.h>

#include "librun/librun.h"

static int failures = 0;
static int rank = 0;
static int world = 0;

#define EXPECT(condition)                                                                   \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      ++failures;                                                                           \
      printf("rank %d: %s:%d: %s (last error: %s)\n", rank, __FILE__, __LINE__, #condition, \
             librun_last_error());                                                          \
    }                                                                                       \
  } while (0)
#define OK(call) EXPECT((call) == LIBRUN_OK)
#define BAD(call) EXPECT((call) == LIBRUN_INVALID_ARGUMENT)

static librun_comm_t const kGarbage = (librun_comm_t)(size_t)0x5a5a5a58;

static librun_comm_t create(void) {
  librun_config_t config;
  librun_comm_t comm = NULL;
  OK(librun_config_init(&config));
  EXPECT(config.struct_size == sizeof(config));
  EXPECT(config.cuda_device == -1);
  OK(librun_comm_create(MPI_COMM_WORLD, &config, &comm));
  EXPECT(comm != NULL);
  return comm;
}

static void test_names(void) {
  int version = 0;
  int i;
  OK(librun_version(&version));
  EXPECT(version == LIBRUN_VERSION_CODE);
  BAD(librun_version(NULL));
  for (i = LIBRUN_OK; i <= LIBRUN_MPI; ++i)
    EXPECT(strlen(librun_status_string((librun_status_t)i)) > 1);
  EXPECT(strcmp(librun_status_string((librun_status_t)99), "unknown status") == 0);
  EXPECT(strcmp(librun_dtype_name(LIBRUN_BFLOAT16), "bfloat16") == 0);
  EXPECT(strcmp(librun_op_name(LIBRUN_MAX), "max") == 0);
  EXPECT(strcmp(librun_algo_name(LIBRUN_ALGO_TWO_SHOT), "two_shot") == 0);
  EXPECT(strcmp(librun_state_name(LIBRUN_SUSPENDED), "suspended") == 0);
  EXPECT(librun_dtype_name((librun_dtype_t)LIBRUN_DTYPE_COUNT) == NULL);
  EXPECT(librun_op_name((librun_op_t)LIBRUN_OP_COUNT) == NULL);
  EXPECT(librun_algo_name((librun_algo_t)LIBRUN_ALGO_COUNT) == NULL);
  EXPECT(librun_state_name((librun_state_t)9) == NULL);
  EXPECT(librun_dtype_bytes(LIBRUN_FLOAT16) == 2);
  EXPECT(librun_dtype_bytes(LIBRUN_INT8) == 1);
  EXPECT(librun_dtype_bytes(LIBRUN_UINT64) == 8);
  EXPECT(librun_dtype_bytes((librun_dtype_t)77) == 0);
}

static void test_data(librun_comm_t comm) {
  float send[100], recv[100], sum = 0;
  librun_graph_t graph = NULL;
  librun_buffer_t buffer = NULL;
  void* memory = NULL;
  int i;
  for (i = 0; i < 100; ++i) send[i] = (float)(rank + i);
  OK(librun_all_reduce(comm, send, recv, 100, LIBRUN_FLOAT32, LIBRUN_SUM, NULL));
  for (i = 0; i < 100; ++i)
    EXPECT(recv[i] == (float)(world * i) + (float)(world * (world - 1)) / 2);
  OK(librun_synchronize(comm, NULL));
  OK(librun_check(comm));

  send[0] = 1;
  OK(librun_graph_begin(comm, NULL));
  OK(librun_all_reduce(comm, send, &sum, 1, LIBRUN_FLOAT32, LIBRUN_SUM, NULL));
  OK(librun_graph_end(comm, NULL, &graph));
  EXPECT(sum == 0);
  OK(librun_graph_launch(graph, NULL));
  EXPECT(sum == (float)world);

  OK(librun_malloc(comm, 4096, &memory));
  EXPECT(memory != NULL && (size_t)memory % 4096 == 0);
  EXPECT(((char*)memory)[0] == 0 && ((char*)memory)[4095] == 0);
  OK(librun_register(comm, memory, 4096, &buffer));
  EXPECT(librun_free(comm, memory) == LIBRUN_REJECTED);
  EXPECT(strstr(librun_last_error(), "unregister") != NULL);

  OK(librun_suspend(comm, -1));
  EXPECT(librun_graph_launch(graph, NULL) == LIBRUN_INVALID_STATE);
  EXPECT(librun_suspend(comm, -1) == LIBRUN_ALREADY_THERE);
  OK(librun_resume(comm, 20000));
  EXPECT(librun_resume(comm, -1) == LIBRUN_ALREADY_THERE);
  sum = 0;
  OK(librun_graph_launch(graph, NULL));
  EXPECT(sum == (float)world);
  OK(librun_suspend_all(-1));
  OK(librun_resume_on(comm, MPI_COMM_WORLD, -1));
  EXPECT(librun_resume_all(-1) == LIBRUN_ALREADY_THERE);
  OK(librun_graph_destroy(graph));
  OK(librun_unregister(comm, buffer));
  OK(librun_free(comm, memory));
  OK(librun_free(comm, NULL));
}

static void test_getters(librun_comm_t comm) {
  librun_state_t state = LIBRUN_CLOSED;
  librun_stats_t stats;
  librun_plan_t plan;
  librun_phase_t phases[32];
  librun_mapping_t mappings[64];
  char text[4096];
  size_t needed = 0;
  int count = -1;
  OK(librun_comm_state(comm, &state));
  EXPECT(state == LIBRUN_ACTIVE);
  memset(&stats, 0xff, sizeof(stats));
  stats.struct_size = sizeof(stats);
  OK(librun_comm_stats(comm, &stats));
  EXPECT(stats.world == world && stats.rank == rank);
  EXPECT(stats.open_mappings == (uint64_t)(world - 1));
  /* A caller that was built with an older, shorter struct keeps what comes after it. */
  memset(&stats, 0xff, sizeof(stats));
  stats.struct_size = offsetof(librun_stats_t, generation);
  OK(librun_comm_stats(comm, &stats));
  EXPECT(stats.world == world);
  EXPECT(stats.last_resume_us == (uint64_t)-1);

  memset(&plan, 0xff, sizeof(plan));
  plan.struct_size = sizeof(plan);
  OK(librun_comm_plan(comm, 1000, LIBRUN_FLOAT64, LIBRUN_MAX, &plan));
  EXPECT(plan.struct_size == sizeof(plan));
  EXPECT(plan.algo > LIBRUN_ALGO_AUTO && plan.algo < LIBRUN_ALGO_COUNT);
  EXPECT(plan.device[0] != '\0');
  memset(&plan, 0xff, sizeof(plan));
  plan.struct_size = offsetof(librun_plan_t, blocks);
  OK(librun_comm_plan(comm, 0, LIBRUN_INT8, LIBRUN_SUM, &plan));
  EXPECT(plan.algo > LIBRUN_ALGO_AUTO && plan.algo < LIBRUN_ALGO_COUNT);
  EXPECT(plan.threads == -1);

  OK(librun_comm_phases(comm, LIBRUN_TRANSITION_CREATE, phases, 32, &count));
  EXPECT(count >= 3 && phases[0].name[0] != '\0');
  OK(librun_comm_mappings(comm, mappings, 64, &count));
  EXPECT(count == world - 1);
  OK(librun_comm_mappings(comm, NULL, 0, &count));
  EXPECT(count == world - 1);

  OK(librun_checkpoint_blockers(text, sizeof(text), &count));
  EXPECT(count >= 1 && strlen(text) > 0);
  text[5] = 'x';
  OK(librun_checkpoint_blockers(text, 5, &count));
  EXPECT(strlen(text) == 4 && text[5] == 'x');
  OK(librun_checkpoint_notes(text, sizeof(text), &count));
  EXPECT(count >= 0 && (count == 0) == (strlen(text) == 0));
  BAD(librun_checkpoint_notes(text, sizeof(text), NULL));
  OK(librun_settings_json(NULL, 0, &needed));
  EXPECT(needed > 100);
  OK(librun_settings_json(text, sizeof(text), &needed));
  EXPECT(text[0] == '[');
  OK(librun_device_probe(LIBRUN_DEVICE_HOST, text, sizeof(text)));
  EXPECT(strlen(text) > 0);
}

static void test_bad_arguments(librun_comm_t comm) {
  librun_config_t config;
  librun_stats_t stats;
  librun_plan_t plan;
  librun_state_t state;
  librun_graph_t graph;
  librun_buffer_t buffer;
  librun_mapping_t mapping;
  librun_error_info_t info;
  void* memory;
  float value = 1;
  int count;
  char text[8];
  BAD(librun_config_init(NULL));
  BAD(librun_comm_create(MPI_COMM_WORLD, NULL, NULL));
  BAD(librun_comm_close(NULL));
  BAD(librun_comm_close(kGarbage));
  BAD(librun_comm_destroy(kGarbage));
  BAD(librun_all_reduce(kGarbage, &value, &value, 1, LIBRUN_FLOAT32, LIBRUN_SUM, NULL));
  BAD(librun_synchronize(NULL, NULL));
  BAD(librun_register(NULL, &value, 4, &buffer));
  BAD(librun_register(comm, &value, 4, NULL));
  BAD(librun_unregister(NULL, NULL));
  BAD(librun_graph_begin(NULL, NULL));
  BAD(librun_graph_end(NULL, NULL, &graph));
  BAD(librun_graph_end(comm, NULL, NULL));
  BAD(librun_graph_launch(NULL, NULL));
  BAD(librun_graph_launch((librun_graph_t)kGarbage, NULL));
  BAD(librun_graph_destroy(NULL));
  BAD(librun_suspend(NULL, -1));
  BAD(librun_suspend(comm, 0));
  BAD(librun_suspend(comm, -2));
  BAD(librun_resume(comm, 0));
  BAD(librun_resume(NULL, -1));
  BAD(librun_resume_on(comm, MPI_COMM_NULL, -1));
  BAD(librun_suspend_all(0));
  BAD(librun_resume_all(-7));
  BAD(librun_abort(NULL, "no"));
  BAD(librun_check(NULL));
  BAD(librun_comm_state(NULL, &state));
  BAD(librun_comm_state(comm, NULL));
  BAD(librun_comm_stats(comm, NULL));
  stats.struct_size = 0;
  BAD(librun_comm_stats(comm, &stats));
  BAD(librun_comm_plan(NULL, 1, LIBRUN_FLOAT32, LIBRUN_SUM, &plan));
  BAD(librun_comm_plan(comm, 1, LIBRUN_FLOAT32, LIBRUN_SUM, NULL));
  BAD(librun_comm_plan(comm, 1, LIBRUN_DTYPE_COUNT, LIBRUN_SUM, &plan));
  BAD(librun_comm_plan(comm, 1, LIBRUN_FLOAT32, LIBRUN_OP_COUNT, &plan));
  BAD(librun_comm_plan(comm, LIBRUN_MAX_COUNT + 1, LIBRUN_FLOAT32, LIBRUN_SUM, &plan));
  plan.struct_size = 4;
  BAD(librun_comm_plan(comm, 1, LIBRUN_FLOAT32, LIBRUN_SUM, &plan));
  BAD(librun_comm_phases(comm, (librun_transition_t)3, NULL, 0, &count));
  BAD(librun_comm_phases(comm, LIBRUN_TRANSITION_CREATE, NULL, 0, NULL));
  BAD(librun_comm_phases(comm, LIBRUN_TRANSITION_CREATE, NULL, 3, &count));
  BAD(librun_comm_mappings(comm, &mapping, -1, &count));
  BAD(librun_checkpoint_blockers(text, sizeof(text), NULL));
  BAD(librun_checkpoint_blockers(NULL, 8, &count));
  BAD(librun_malloc(comm, 0, &memory));
  BAD(librun_malloc(comm, 16, NULL));
  BAD(librun_malloc(comm, (size_t)-1, &memory));
  BAD(librun_free(comm, &value));
  BAD(librun_free(NULL, NULL));
  BAD(librun_device_probe(LIBRUN_DEVICE_AUTO, NULL, 0));
  BAD(librun_last_error_info(NULL));

  OK(librun_config_init(&config));
  config.struct_size = 0;
  BAD(librun_comm_create(MPI_COMM_WORLD, &config, &comm));
  EXPECT(strstr(librun_last_error(), "struct_size") != NULL);
  info.struct_size = sizeof(info);
  OK(librun_last_error_info(&info));
  EXPECT(info.status == LIBRUN_INVALID_ARGUMENT);
  EXPECT(strstr(info.text, "struct_size") != NULL);
}

int main(int argc, char** argv) {
  librun_comm_t comm;
  librun_state_t state = LIBRUN_ACTIVE;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);

  test_names();
  comm = create();
  test_data(comm);
  test_getters(comm);
  test_bad_arguments(comm);
  test_data(comm);
  OK(librun_comm_close(comm));
  OK(librun_comm_state(comm, &state));
  EXPECT(state == LIBRUN_CLOSED);
  OK(librun_comm_destroy(comm));
  BAD(librun_comm_destroy(comm));
  BAD(librun_comm_state(comm, &state));

  comm = create();
  MPI_Barrier(MPI_COMM_WORLD);
  OK(librun_abort(comm, NULL));
  EXPECT(librun_check(comm) == LIBRUN_FAILED);
  OK(librun_comm_close(comm));
  OK(librun_comm_destroy(comm));

  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d failures\n", failures);
  MPI_Finalize();
  return failures != 0;
}
