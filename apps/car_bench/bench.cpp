// SPDX-License-Identifier: Apache-2.0
#include "car_bench/bench.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>

#include "car_bench/librun_way.hpp"
#include "common/host_copy.hpp"
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
/// Of graphs on a device; each is a batch.
constexpr int kMinReplays = 20;
constexpr int kMaxReplays = 200;
/// Of one replay; beyond it, kBatches of them are enough.
constexpr double kLongReplayUs = 50e3;

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

/// Other data each time, so that the result of an earlier call cannot pass for this one's.
void Bench::check(const Work& work, librun::Communicator& comm, std::uint64_t seed,
                  Result& result) {
  for (int i = 0; i < options_.checks; ++i) {
    seed = mix64(seed);
    result.out_of_place.wrong += wrong_elements(work, comm, false, seed);
    result.in_place.wrong += wrong_elements(work, comm, true, seed + 1);
  }
}

std::uint64_t Bench::wrong_elements(const Work& work, librun::Communicator& comm, bool in_place,
                                    std::uint64_t seed) {
  std::byte* const input = in_place ? work.recv : work.send;
  const auto reduce = [&] {
    comm.all_reduce(input, work.recv, work.count, work.dtype, work.op, work.stream);
  };
  librun::Graph graph;
  if (options_.graph_calls > 0) {
    comm.begin_graph(work.stream);
    reduce();
    graph = comm.end_graph(work.stream);
  }
  if (!in_place) device_.fill(work.recv, std::byte{0xa5}, work.size_bytes);
  write_through(device_, input, work.size_bytes, [&](std::byte* bytes) {
    fill_input(bytes, work.count, work.dtype, work.op, rank_, world_, seed);
  });
  if (graph)
    graph.launch(work.stream);
  else
    reduce();
  if (device_.is_asynchronous()) comm.synchronize(work.stream);
  const HostCopy result(device_, work.recv, work.size_bytes);
  std::size_t first = 0;
  const std::uint64_t wrong =
      count_wrong(result.data(), work.count, work.dtype, work.op, world_, seed, &first);
  if (wrong > 0) tell_wrong(work, result.data(), first, seed);
  std::uint64_t all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/// Once on each rank: the table has the numbers.
void Bench::tell_wrong(const Work& work, const std::byte* got, std::size_t index,
                       std::uint64_t seed) {
  if (told_wrong_) return;
  told_wrong_ = true;
  fmt::print(stderr, "car_bench: rank {}: {} bytes, {}, {}: element {} is {}, expected {}\n", rank_,
             work.size_bytes, librun_dtype_name(work.dtype), librun_op_name(work.op), index,
             element_text(got + index * librun_dtype_bytes(work.dtype), work.dtype),
             expected_text(index, work.dtype, work.op, world_, seed));
}

/// Writing the input anew is not part of a call: it is timed once more by itself, and taken off,
/// but never more than it takes as a rule: what disturbs that measurement is none of the call's.
double Bench::time_batch(Way& way, int iterations) {
  const auto time = [&](auto&& once) {
    MPI_Barrier(MPI_COMM_WORLD);
    timer_.start(stream_.get());
    for (int i = 0; i < iterations; ++i) once();
    timer_.stop(stream_.get());
    way.finish();
    return combine(timer_.elapsed_us() / iterations / way.calls_each);
  };
  const double us = time([&] {
    write_anew(way.input);
    way.call();
  });
  if (way.input.empty()) return us;
  way.writes_us.push_back(time([&] { write_anew(way.input); }));
  std::vector<double> writes_us = way.writes_us;
  std::sort(writes_us.begin(), writes_us.end());
  const double usual_us = percentile(writes_us, 0.5);
  return std::max(us / 100, us - std::min(way.writes_us.back(), usual_us));
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

/// How long one call of this takes, a whole graph where it is one, in microseconds; rank 0's word.
double Bench::warm_up(Way& way) {
  double us = time_batch(way, 1) * way.calls_each;
  const int more = options_.warmup ? *options_.warmup - 1 : us < kSlowUs ? 9 : 0;
  // The first replay of a graph on a device brings it there.
  const int again = std::max(more / way.calls_each, replays() ? 1 : 0);
  if (again > 0) us = time_batch(way, again) * way.calls_each;
  MPI_Bcast(&us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return std::max(us, 0.01);
}

/// Warms up, and gives each way as many repeats as its share of the time allows.
/// @return how many batches
int Bench::batches_of(std::vector<Way*>& ways) {
  double slowest_us = 0;
  for (Way* way : ways) {
    const double us = warm_up(*way);
    slowest_us = std::max(slowest_us, us);
    way->repeats = 1;
    if (replays()) continue;
    way->repeats = options_.iterations;
    if (way->repeats == 0)
      way->repeats = std::clamp(static_cast<int>(kBudgetUs / kBatches / us), 1, kMaxIterations);
    if (options_.graph_calls > 0 && way->calls_each > 1)
      way->repeats = way->repeats / way->calls_each + 1;
  }
  if (!replays()) return kBatches;
  if (options_.iterations > 0) return std::max(1, options_.iterations / ways[0]->calls_each);
  const int least = slowest_us < kLongReplayUs ? kMinReplays : kBatches;
  return std::clamp(static_cast<int>(kBudgetUs / slowest_us), least, kMaxReplays);
}

void Bench::time_batches(std::vector<Way*>& ways) {
  const int batches = batches_of(ways);
  for (int batch = 0; batch < batches; ++batch) {
    // There and back on a device, where the order of neighbours shows.
    const bool back = device_.is_asynchronous() && batch % 2 == 1;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Way& way = *ways[back ? ways.size() - 1 - i : i];
      way.batches_us.push_back(time_batch(way, way.repeats));
    }
  }
}

/// One algorithm at one size, with its baselines.
struct Bench::Row {
  Work work;
  librun::Communicator& comm;
  Result result{};
  std::vector<Way> ways{};  ///< out of place, in place, then the baselines that take the call

  void summarize_all() {
    summarize(ways[0].batches_us, result.out_of_place);
    summarize(ways[1].batches_us, result.in_place);
    std::size_t next = 2;
    for (BaselineResult& baseline : result.baselines)
      if (baseline.timing) summarize(ways[next++].batches_us, *baseline.timing);
  }
};

Bench::Row Bench::make_row(const Work& work, librun::Communicator& comm) {
  Row row{work, comm};
  row.result.size_bytes = work.size_bytes;
  row.result.count = work.count;
  row.result.dtype = work.dtype;
  row.result.op = work.op;
  row.result.algo = work.algo;
  row.result.plan = comm.plan(work.count, work.dtype, work.op);
  check(work, comm, options_.seed, row.result);
  return row;
}

std::vector<Result> Bench::measure(std::uint64_t size_bytes, librun_dtype_t dtype, librun_op_t op) {
  const std::size_t element = librun_dtype_bytes(dtype);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < comms_.size(); ++i)
    rows.push_back(
        make_row(Work{device_, stream_.get(), buffers_.send(element), buffers_.recv(element),
                      size_bytes / element, size_bytes, dtype, op, options_.algos[i]},
                 comms_[i]));
  // Times are taken on zeros: in place, anything else would overflow soon.
  device_.fill(rows[0].work.send, std::byte{0}, size_bytes);
  device_.fill(rows[0].work.recv, std::byte{0}, size_bytes);

  std::vector<Way*> ways;
  for (Row& row : rows) {
    for (const bool in_place : {false, true})
      row.ways.push_back(librun_way(options_, row.work, row.comm, in_place));
    for (const BaselineColumn& column : baselines_.columns) {
      row.result.baselines.push_back({column.name, std::nullopt});
      if (!column.library || !column.library->takes(row.work)) continue;
      row.ways.push_back(column.library->way(row.work, row.comm));
      row.result.baselines.back().timing.emplace();
    }
    for (Way& way : row.ways) ways.push_back(&way);
  }
  time_batches(ways);

  std::vector<Result> results;
  for (Row& row : rows) {
    row.summarize_all();
    const Way& first = row.ways[0];
    row.result.iterations =
        replays() ? static_cast<int>(first.batches_us.size()) * first.calls_each : first.repeats;
    // The timed calls have moved every counter of the protocol on.
    check(row.work, row.comm, ~options_.seed, row.result);
    results.push_back(std::move(row.result));
  }
  return results;
}

}  // namespace car::bench
