// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients that give way: SIGUSR1 to any rank suspends all at the next iteration,
// SIGUSR2 to any rank lets them go on. In between the driver can checkpoint the ranks:
//
//   mpirun -np 4 preemptible_cg &           # prints how to reach it
//   kill -USR1 PID                          # of any rank
//   car_checkpoint --all --hold 60          # with GPUs: they are free for 60 s
//   kill -USR2 PID
//
// scripts/mpirun/preemptible.sbatch does the same under Slurm.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <librun/librun.hpp>
#include <thread>
#include <vector>

#include "poisson.h"

namespace {

constexpr int kSide = 128;
volatile std::sig_atomic_t go_on = 0;

/// Waits, without a core, until some rank has been told to go on. MPI lives while librun sleeps.
void wait_to_go_on(MPI_Comm mpi) {
  for (int any = 0; any == 0;) {
    const int mine = go_on;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, mpi);
    if (any == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  go_on = 0;
}

/// @return iterations that were needed, -1 when it does not converge
int solve(MPI_Comm mpi, librun::Communicator& comm, int rows, bool tell, int* suspends) {
  const auto side = static_cast<std::size_t>(kSide);
  const std::size_t n = static_cast<std::size_t>(rows) * side;
  std::vector<double> x(n, 0.0), r(n, 1.0), q(n), with_neighbours(n + 2 * side, 0.0);
  double* const p = with_neighbours.data() + side;
  for (std::size_t i = 0; i < n; ++i) p[i] = r[i];
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return comm.all_reduce(sum);
  };
  double rr = dot(r.data(), r.data());
  const double enough = 1e-20 * rr;
  for (int iteration = 0; iteration < 10 * kSide; ++iteration) {
    if (rr <= enough) return iteration;
    if (comm.suspend_requested()) {
      comm.suspend();
      ++*suspends;
      if (tell) std::printf("suspended before iteration %d\n", iteration), std::fflush(stdout);
      wait_to_go_on(mpi);
      comm.resume();
      if (tell) std::printf("resumed\n"), std::fflush(stdout);
    }
    poisson_multiply(mpi, rows, kSide, with_neighbours.data(), q.data());
    const double alpha = rr / dot(p, q.data());
    for (std::size_t i = 0; i < n; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    const double next = dot(r.data(), r.data());
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + next / rr * p[i];
    rr = next;
  }
  return -1;
}

int run(MPI_Comm mpi, int solves, int rank, int world) {
  const int rows =
      poisson_first_row(kSide, rank + 1, world) - poisson_first_row(kSide, rank, world);
  librun::Communicator comm(mpi);
  if (rank == 0)
    std::printf("rank 0 is process %d: kill -USR1 suspends, kill -USR2 resumes\n",
                static_cast<int>(::getpid())),
        std::fflush(stdout);
  int suspends = 0;
  int iterations = 0;
  bool same = true;
  for (int i = 0; i < solves; ++i) {
    const int needed = solve(mpi, comm, rows, rank == 0, &suspends);
    same = same && needed > 0 && (i == 0 || needed == iterations);
    iterations = needed;
  }
  comm.close();
  if (rank == 0)
    std::printf("%d solves, %d suspends, iterations: %d, %s\n", solves, suspends, iterations,
                same ? "equal" : "DIFFERENT");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGUSR1, [](int) { librun_request_suspend(); });
  std::signal(SIGUSR2, [](int) { go_on = 1; });
  MPI_Init(&argc, &argv);
  int rank = 0, world = 0, exit_code = 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  try {
    exit_code = run(MPI_COMM_WORLD, argc > 1 ? std::atoi(argv[1]) : 100, rank, world);
  } catch (const librun::Error& error) {
    std::fprintf(stderr, "preemptible_cg: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  MPI_Finalize();
  return exit_code;
}
