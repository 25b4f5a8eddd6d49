// SPDX-License-Identifier: Apache-2.0
#include "car_bench/bench.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "common/verify.hpp"

namespace car::bench {
namespace {

/// Batches of all ways alternate, so that what disturbs the machine disturbs all alike.
constexpr int kBatches = 7;
/// Time for all batches of one way at one size.
constexpr double kBudgetUs = 120e3;
constexpr int kMaxIterations = 2000;
/// A call this slow has no cold start that shows.
constexpr double kSlowUs = 5e3;

MPI_Datatype mpi_type(librun_dtype_t dtype) {
  switch (dtype) {
    // MPI has no 16-bit floats: the same count of floats is what a code without librun would send.
    case LIBRUN_FLOAT16:
    case LIBRUN_BFLOAT16:
    case LIBRUN_FLOAT32:
      return MPI_FLOAT;
    case LIBRUN_FLOAT64:
      return MPI_DOUBLE;
    case LIBRUN_INT8:
      return MPI_INT8_T;
    case LIBRUN_UINT8:
      return MPI_UINT8_T;
    case LIBRUN_INT32:
      return MPI_INT32_T;
    case LIBRUN_UINT32:
      return MPI_UINT32_T;
    case LIBRUN_INT64:
      return MPI_INT64_T;
    default:
      return MPI_UINT64_T;
  }
}

MPI_Op mpi_op(librun_op_t op) {
  static const MPI_Op kOps[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  return kOps[op];
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(at + 0.5)];
}

void summarize(std::vector<double> batches_us, Timing& timing) {
  std::sort(batches_us.begin(), batches_us.end());
  timing.median_us = percentile(batches_us, 0.5);
  timing.p5_us = percentile(batches_us, 0.05);
  timing.p95_us = percentile(batches_us, 0.95);
}

}  // namespace

struct Bench::Work {
  librun::Communicator& comm;
  std::byte* send;
  std::byte* recv;
  std::size_t count;
  std::size_t size_bytes;
  librun_dtype_t dtype;
  librun_op_t op;
};

/// Other data each time, so that the result of an earlier call cannot pass for this one's.
void Bench::check(const Work& work, std::uint64_t seed, Result& result) {
  for (int i = 0; i < options_.checks; ++i) {
    seed = mix64(seed);
    result.out_of_place.wrong += wrong_elements(work, false, seed);
    result.in_place.wrong += wrong_elements(work, true, seed + 1);
  }
}

std::uint64_t Bench::wrong_elements(const Work& work, bool in_place, std::uint64_t seed) {
  std::byte* const input = in_place ? work.recv : work.send;
  librun::Graph graph;
  if (options_.graph_calls > 0) {
    work.comm.begin_graph();
    work.comm.all_reduce(input, work.recv, work.count, work.dtype, work.op);
    graph = work.comm.end_graph();
  }
  if (!in_place) std::memset(work.recv, 0xa5, work.size_bytes);
  fill_input(input, work.count, work.dtype, work.op, rank_, world_, seed);
  if (graph)
    graph.launch();
  else
    work.comm.all_reduce(input, work.recv, work.count, work.dtype, work.op);
  std::size_t first = 0;
  const std::uint64_t wrong =
      count_wrong(work.recv, work.count, work.dtype, work.op, world_, seed, &first);
  if (wrong > 0) tell_wrong(work, first, seed);
  std::uint64_t all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/// Once on each rank: the table has the numbers.
void Bench::tell_wrong(const Work& work, std::size_t index, std::uint64_t seed) {
  if (told_wrong_) return;
  told_wrong_ = true;
  fmt::print(stderr, "car_bench: rank {}: {} bytes, {}, {}: element {} is {}, expected {}\n", rank_,
             work.size_bytes, librun_dtype_name(work.dtype), librun_op_name(work.op), index,
             element_text(work.recv + index * librun_dtype_bytes(work.dtype), work.dtype),
             expected_text(index, work.dtype, work.op, world_, seed));
}

Bench::Way Bench::librun_way(const Work& work, bool in_place, std::vector<librun::Graph>& graphs) {
  const std::byte* const input = in_place ? work.recv : work.send;
  const auto reduce = [this, work, input] {
    for (int i = 0; i < options_.aggregate; ++i)
      work.comm.all_reduce(input, work.recv, work.count, work.dtype, work.op);
  };
  if (options_.graph_calls == 0) {
    return {[work, reduce] {
              if (work.size_bytes) work.send[0] ^= std::byte{1};
              reduce();
            },
            options_.aggregate};
  }
  work.comm.begin_graph();
  for (int i = 0; i < options_.graph_calls; ++i) reduce();
  graphs.push_back(work.comm.end_graph());
  return {[&graphs, at = graphs.size() - 1] { graphs[at].launch(); },
          options_.aggregate * options_.graph_calls};
}

Bench::Way Bench::mpi_way(const Work& work) {
  // 16-bit floats go as floats, twice the bytes: more than the buffers hold.
  const bool widened = is_half(work.dtype);
  auto wide = std::make_shared<std::vector<float>>(widened ? 2 * work.count : 0);
  std::byte* const send = widened ? reinterpret_cast<std::byte*>(wide->data()) : work.send;
  std::byte* const recv = widened ? send + work.count * sizeof(float) : work.recv;
  return {[this, work, wide, send, recv] {
            if (work.size_bytes) send[0] ^= std::byte{1};
            for (int i = 0; i < options_.aggregate; ++i)
              MPI_Allreduce(send, recv, static_cast<int>(work.count), mpi_type(work.dtype),
                            mpi_op(work.op), MPI_COMM_WORLD);
          },
          options_.aggregate};
}

double Bench::time_batch(const Way& way, int iterations) const {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) way.call();
  const double elapsed_us = (MPI_Wtime() - start) * 1e6;
  return combine(elapsed_us / iterations / way.calls_each);
}

double Bench::combine(double us) const {
  double result = us;
  switch (options_.average) {
    case Average::rank0:
      MPI_Bcast(&result, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      break;
    case Average::mean:
      MPI_Allreduce(&us, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      result /= world_;
      break;
    case Average::min:
      MPI_Allreduce(&us, &result, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
      break;
    case Average::max:
      MPI_Allreduce(&us, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      break;
  }
  return result;
}

/// The warm-up tells how long a call takes; rank 0's word counts.
int Bench::choose_iterations(const std::vector<Way>& ways) const {
  double slowest_us = 0;
  for (const Way& way : ways) {
    double us = time_batch(way, 1) * way.calls_each;
    const int more = options_.warmup ? *options_.warmup - 1 : us < kSlowUs ? 9 : 0;
    if (more >= way.calls_each) us = time_batch(way, more / way.calls_each) * way.calls_each;
    slowest_us = std::max(slowest_us, us);
  }
  if (options_.iterations > 0) return options_.iterations;
  int iterations = static_cast<int>(kBudgetUs / kBatches / std::max(slowest_us, 0.01));
  iterations = std::clamp(iterations, 1, kMaxIterations);
  MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return iterations;
}

Result Bench::measure(std::uint64_t size_bytes, librun_dtype_t dtype, librun_op_t op,
                      std::size_t algo_index) {
  const std::size_t element = librun_dtype_bytes(dtype);
  const Work work{comms_[algo_index],
                  buffers_.send(element),
                  buffers_.recv(element),
                  size_bytes / element,
                  size_bytes,
                  dtype,
                  op};
  Result result;
  result.size_bytes = size_bytes;
  result.count = work.count;
  result.dtype = dtype;
  result.op = op;
  result.algo = options_.algos[algo_index];

  check(work, options_.seed, result);
  // Times are taken on zeros: in place, anything else would overflow soon.
  std::memset(work.send, 0, size_bytes);
  std::memset(work.recv, 0, size_bytes);

  std::vector<librun::Graph> graphs;
  graphs.reserve(2);
  std::vector<Way> ways{librun_way(work, false, graphs), librun_way(work, true, graphs)};
  const bool mpi_fits = work.count <= static_cast<std::size_t>(1) << 30;
  if (options_.baseline_mpi && mpi_fits) ways.push_back(mpi_way(work));
  result.iterations = choose_iterations(ways);
  for (int batch = 0; batch < kBatches; ++batch)
    for (Way& way : ways)
      way.batches_us.push_back(
          time_batch(way, std::max(1, options_.graph_calls > 0 && way.calls_each > 1
                                          ? result.iterations / way.calls_each + 1
                                          : result.iterations)));
  summarize(ways[0].batches_us, result.out_of_place);
  summarize(ways[1].batches_us, result.in_place);
  if (ways.size() > 2) summarize(ways[2].batches_us, result.mpi.emplace());
  // The timed calls have moved every counter of the protocol on.
  check(work, ~options_.seed, result);
  return result;
}

}  // namespace car::bench
