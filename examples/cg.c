/* SPDX-License-Identifier: Apache-2.0 */
/* The same solver in C: conjugate gradients with dot products through librun. */
#include <librun/librun.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "poisson.h"

enum { kRows = 1000, kIterations = 200 };

static void check(librun_status_t status, const char* call) {
  if (status == LIBRUN_OK || status == LIBRUN_ALREADY_THERE) return;
  fprintf(stderr, "cg_c: %s: %s\n", call, librun_last_error());
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static double dot(librun_comm_t comm, const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < kRows; ++i) sum += a[i] * b[i];
  check(librun_all_reduce(comm, &sum, &sum, 1, LIBRUN_FLOAT64, LIBRUN_SUM, NULL), "all_reduce");
  return sum;
}

static double solve(MPI_Comm mpi, librun_comm_t comm, int suspend) {
  static double x[kRows], r[kRows], p[kRows], q[kRows];
  for (int i = 0; i < kRows; ++i) {
    x[i] = 0;
    p[i] = r[i] = 1;
  }
  double rr = dot(comm, r, r);
  for (int k = 0; k < kIterations; ++k) {
    if (suspend && k == kIterations / 2) {
      check(librun_suspend(comm, -1), "suspend");
      check(librun_resume(comm, -1), "resume");
    }
    poisson_multiply(mpi, kRows, p, q);
    const double alpha = rr / dot(comm, p, q);
    for (int i = 0; i < kRows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    const double next = dot(comm, r, r);
    const double beta = next / rr;
    rr = next;
    for (int i = 0; i < kRows; ++i) p[i] = r[i] + beta * p[i];
  }
  return sqrt(rr);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  librun_comm_t comm = NULL;
  check(librun_comm_create(MPI_COMM_WORLD, NULL, &comm), "comm_create");
  const double plain = solve(MPI_COMM_WORLD, comm, 0);
  const double suspended = solve(MPI_COMM_WORLD, comm, 1);
  const int equal = plain == suspended;
  if (rank == 0)
    printf("residual after %d iterations: %.17g, with a suspend in between: %.17g, %s\n",
           kIterations, plain, suspended, equal ? "equal" : "DIFFERENT");
  check(librun_comm_close(comm), "comm_close");
  check(librun_comm_destroy(comm), "comm_destroy");
  MPI_Finalize();
  return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}
