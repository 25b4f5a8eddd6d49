/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix of the examples: the 5-point Poisson operator on a square grid of points, whose rows
 * are dealt out over the ranks. */
#ifndef POISSON_H
#define POISSON_H

#include <mpi.h>

/* The first of this rank's rows; that of rank + 1 is the first behind them. */
static inline int poisson_first_row(int side, int rank, int world) {
  return (int)((long)side * rank / world);
}

/* y = A x for this rank's rows. x has a row more at each end, where this puts the neighbours'
 * values; at the edge of the grid these rows must be 0. */
static inline void poisson_multiply(MPI_Comm comm, int rows, int side, double* x, double* y) {
  int rank, world;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &world);
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank < world - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(x + side, side, MPI_DOUBLE, above, 0, x + (rows + 1) * side, side, MPI_DOUBLE, below,
               0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(x + rows * side, side, MPI_DOUBLE, below, 1, x, side, MPI_DOUBLE, above, 1, comm,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < rows; ++i) {
    const double* row = x + (i + 1) * side;
    for (int j = 0; j < side; ++j) {
      const double left = j > 0 ? row[j - 1] : 0;
      const double right = j < side - 1 ? row[j + 1] : 0;
      y[i * side + j] = 4 * row[j] - left - right - row[j - side] - row[j + side];
    }
  }
}

#endif
