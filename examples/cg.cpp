// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients on the 1-D Poisson equation. Every dot product goes through librun, which is
// suspended and resumed in the middle of the solve; the iterates do not change by a bit.
#include <cmath>
#include <cstdio>
#include <librun/librun.hpp>
#include <vector>

#include "poisson.h"

namespace {

using Vector = std::vector<double>;

double dot(librun::Communicator& comm, const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return comm.all_reduce(sum);
}

/// Returns |r| after `iterations` steps; suspends in the middle when asked to.
double solve(MPI_Comm mpi, librun::Communicator& comm, int rows, int iterations, bool suspend) {
  const auto n = static_cast<std::size_t>(rows);
  Vector x(n, 0.0), r(n, 1.0), p = r, q(n);
  double rr = dot(comm, r, r);
  for (int k = 0; k < iterations; ++k) {
    if (suspend && k == iterations / 2) {
      comm.suspend();  // here the driver could checkpoint the process
      comm.resume();
    }
    poisson_multiply(mpi, rows, p.data(), q.data());
    const double alpha = rr / dot(comm, p, q);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    const double next = dot(comm, r, r);
    const double beta = next / rr;
    rr = next;
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + beta * p[i];
  }
  return std::sqrt(rr);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int exit_code = 0;
  try {
    librun::Communicator comm(MPI_COMM_WORLD);
    const double plain = solve(MPI_COMM_WORLD, comm, 1000, 200, false);
    const double suspended = solve(MPI_COMM_WORLD, comm, 1000, 200, true);
    exit_code = plain == suspended ? 0 : 1;
    if (rank == 0)
      std::printf("residual after 200 iterations: %.17g, with a suspend in between: %.17g, %s\n",
                  plain, suspended, exit_code == 0 ? "equal" : "DIFFERENT");
    comm.close();
  } catch (const librun::Error& error) {
    std::fprintf(stderr, "cg: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return exit_code;
}
