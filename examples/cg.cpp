// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients on the 2-D Poisson equation. Every dot product goes through librun, which is
// suspended and resumed in the middle of the second solve; the solution does not change by a bit.
#include <cmath>
#include <cstdio>
#include <librun/librun.hpp>
#include <vector>

#include "poisson.h"

namespace {

constexpr int kSide = 128;
constexpr int kMaxIterations = 10 * kSide;
constexpr double kTolerance = 1e-10;
constexpr int kNever = -1;

using Vector = std::vector<double>;

struct Solution {
  Vector x;
  int iterations;
  double residual;
};

double dot(librun::Communicator& comm, const double* a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a[i] * b[i];
  return comm.all_reduce(sum);
}

/// Solves A x = 1; suspends and resumes before iteration `suspend_at`.
Solution solve(MPI_Comm mpi, librun::Communicator& comm, int rows, int suspend_at) {
  const auto side = static_cast<std::size_t>(kSide);
  const std::size_t n = static_cast<std::size_t>(rows) * side;
  Solution s{Vector(n, 0.0), 0, 0.0};
  Vector r(n, 1.0), q(n), with_neighbours(n + 2 * side, 0.0);
  double* const p = with_neighbours.data() + side;
  for (std::size_t i = 0; i < n; ++i) p[i] = r[i];

  double rr = dot(comm, r.data(), r);
  const double enough = kTolerance * kTolerance * rr;
  while (rr > enough && s.iterations < kMaxIterations) {
    if (s.iterations == suspend_at) {
      comm.suspend();  // now no memory of another process is mapped: a checkpoint could be taken
      comm.resume();
    }
    poisson_multiply(mpi, rows, kSide, with_neighbours.data(), q.data());
    const double alpha = rr / dot(comm, p, q);
    for (std::size_t i = 0; i < n; ++i) {
      s.x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    const double next = dot(comm, r.data(), r);
    const double beta = next / rr;
    rr = next;
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + beta * p[i];
    ++s.iterations;
  }
  s.residual = std::sqrt(rr);
  return s;
}

/// 0 when both solves converge and agree bit by bit on every rank.
int compare(MPI_Comm mpi, int rank, int world) {
  const int rows =
      poisson_first_row(kSide, rank + 1, world) - poisson_first_row(kSide, rank, world);
  librun::Communicator comm(mpi);
  const Solution plain = solve(mpi, comm, rows, kNever);
  const int middle = plain.iterations / 2;
  const Solution interrupted = solve(mpi, comm, rows, middle);
  const int differs = plain.x != interrupted.x || plain.iterations != interrupted.iterations;
  const bool equal = comm.all_reduce(differs) == 0;
  comm.close();
  if (rank == 0)
    std::printf(
        "ranks: %d, points: %d x %d, iterations: %d, residual: %.3g\n"
        "with a suspend and resume after iteration %d: iterations: %d, residual: %.3g, %s\n",
        world, kSide, kSide, plain.iterations, plain.residual, middle, interrupted.iterations,
        interrupted.residual, equal ? "equal" : "DIFFERENT");
  return equal && plain.iterations < kMaxIterations ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, world = 0, exit_code = 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  try {
    exit_code = compare(MPI_COMM_WORLD, rank, world);
  } catch (const librun::Error& error) {
    std::fprintf(stderr, "cg: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  MPI_Finalize();
  return exit_code;
}
