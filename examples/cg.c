/* SPDX-License-Identifier: Apache-2.0 */
/* The same solver in C: conjugate gradients whose dot products go through librun, which is
 * suspended and resumed in the middle of the second solve. */
#include <librun/librun.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "poisson.h"

enum { kSide = 128, kMaxIterations = 10 * kSide, kNever = -1 };
static const double kTolerance = 1e-10;

/* This rank's part of the vectors; p has a row more at each end, for the neighbours' values. */
typedef struct {
  MPI_Comm mpi;
  librun_comm_t comm;
  int rows, n;
  double *r, *q, *with_neighbours, *p;
} solver_t;

static void check(librun_status_t status, const char* call) {
  if (status == LIBRUN_OK || status == LIBRUN_ALREADY_THERE) return;
  fprintf(stderr, "cg_c: %s: %s\n", call, librun_last_error());
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static double* zeros(int n) {
  double* values = calloc((size_t)n, sizeof(double));
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return values;
}

static double dot(const solver_t* s, const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < s->n; ++i) sum += a[i] * b[i];
  check(librun_all_reduce(s->comm, &sum, &sum, 1, LIBRUN_FLOAT64, LIBRUN_SUM, NULL), "all_reduce");
  return sum;
}

/* Solves A x = 1 and returns the iterations; suspends and resumes before iteration suspend_at. */
static int solve(const solver_t* s, int suspend_at, double* x, double* residual) {
  for (int i = 0; i < s->n; ++i) {
    x[i] = 0;
    s->p[i] = s->r[i] = 1;
  }
  double rr = dot(s, s->r, s->r);
  const double enough = kTolerance * kTolerance * rr;
  int k = 0;
  for (; rr > enough && k < kMaxIterations; ++k) {
    if (k == suspend_at) {
      check(librun_suspend(s->comm, -1), "suspend");
      check(librun_resume(s->comm, -1), "resume");
    }
    poisson_multiply(s->mpi, s->rows, kSide, s->with_neighbours, s->q);
    const double alpha = rr / dot(s, s->p, s->q);
    for (int i = 0; i < s->n; ++i) {
      x[i] += alpha * s->p[i];
      s->r[i] -= alpha * s->q[i];
    }
    const double next = dot(s, s->r, s->r);
    const double beta = next / rr;
    rr = next;
    for (int i = 0; i < s->n; ++i) s->p[i] = s->r[i] + beta * s->p[i];
  }
  *residual = sqrt(rr);
  return k;
}

/* 0 when both solves converge and agree bit by bit on every rank. */
static int compare(solver_t* s, int rank, int world) {
  double* plain = zeros(s->n);
  double* interrupted = zeros(s->n);
  double residual = 0, residual_again = 0;
  const int iterations = solve(s, kNever, plain, &residual);
  const int again = solve(s, iterations / 2, interrupted, &residual_again);
  int differs =
      again != iterations || memcmp(plain, interrupted, (size_t)s->n * sizeof(double)) != 0;
  check(librun_all_reduce(s->comm, &differs, &differs, 1, LIBRUN_INT32, LIBRUN_SUM, NULL),
        "all_reduce");
  if (rank == 0)
    printf(
        "ranks: %d, points: %d x %d, iterations: %d, residual: %.3g\n"
        "with a suspend and resume after iteration %d: iterations: %d, residual: %.3g, %s\n",
        world, kSide, kSide, iterations, residual, iterations / 2, again, residual_again,
        differs == 0 ? "equal" : "DIFFERENT");
  free(plain);
  free(interrupted);
  return differs == 0 && iterations < kMaxIterations ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);

  solver_t s;
  s.mpi = MPI_COMM_WORLD;
  s.rows = poisson_first_row(kSide, rank + 1, world) - poisson_first_row(kSide, rank, world);
  s.n = s.rows * kSide;
  s.r = zeros(s.n);
  s.q = zeros(s.n);
  s.with_neighbours = zeros(s.n + 2 * kSide);
  s.p = s.with_neighbours + kSide;
  check(librun_comm_create(s.mpi, NULL, &s.comm), "comm_create");

  const int exit_code = compare(&s, rank, world);

  check(librun_comm_close(s.comm), "comm_close");
  check(librun_comm_destroy(s.comm), "comm_destroy");
  free(s.r);
  free(s.q);
  free(s.with_neighbours);
  MPI_Finalize();
  return exit_code;
}
