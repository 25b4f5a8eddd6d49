// SPDX-License-Identifier: Apache-2.0
// car_bench: measures and checks the all-reduce.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "car_bench/baseline.hpp"
#include "car_bench/bench.hpp"
#include "car_bench/options.hpp"
#include "car_bench/report.hpp"
#include "car_bench/suspend_timing.hpp"
#include "car_bench/table.hpp"
#include "car_bench/tune.hpp"
#include "common/device_choice.hpp"
#include "common/exit_codes.hpp"
#include "common/hosts.hpp"
#include "common/info.hpp"
#include "common/json_file.hpp"
#include "common/mpi_session.hpp"
#include "common/parse.hpp"
#include "common/watchdog.hpp"

namespace car::bench {
namespace {

/// Why this cannot run here, or "". Collective; the same on all ranks.
std::string refuse(const Options& options, const Device& device,
                   const std::vector<RankPlace>& places, int rank) {
  const bool on_host = !device.is_asynchronous();
  const int world = static_cast<int>(places.size());
  const std::uint64_t copies = (on_host && options.baseline_mpi) ? 6
                               : options.baseline_nccl           ? 4
                                                                 : 2;
  const auto sharing = static_cast<std::uint64_t>(on_host ? world : ranks_on_gpu_of(places, rank));
  const std::uint64_t needed = options.max_bytes * copies * sharing / 10 * 11;
  const std::uint64_t available = device.available_bytes();
  std::uint64_t lack[] = {available != 0 && needed > available ? needed : 0, ~available};
  MPI_Allreduce(MPI_IN_PLACE, lack, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (lack[0] != 0)
    return fmt::format("-e {} needs {} MiB for {} ranks, {} MiB are available{}: use a smaller -e",
                       size_text(options.max_bytes), lack[0] >> 20, on_host ? world : sharing,
                       ~lack[1] >> 20, on_host ? "" : " on a GPU");
  return {};
}

void list(const Options& options) {
  for (const librun_algo_t algo : options.algos)
    for (const librun_dtype_t dtype : options.dtypes)
      for (const librun_op_t op : options.ops)
        for (const std::uint64_t size : sizes_of(options))
          fmt::print("{} {} {} {}\n", size, librun_dtype_name(dtype), librun_op_name(op),
                     librun_algo_name(algo));
}

std::vector<librun::Communicator> make_communicators(const Options& options,
                                                     const ChosenDevice& device) {
  std::vector<librun::Communicator> comms;
  for (const librun_algo_t algo : options.algos) {
    librun::Config config = device.config();
    config.algo = algo;
    comms.emplace_back(MPI_COMM_WORLD, config);
  }
  return comms;
}

/// Runs every combination and hands each result to `show`.
template <class Show>
void sweep(const Options& o, Bench& bench, Watchdog& watchdog, Show show) {
  std::string algos;
  for (const librun_algo_t algo : o.algos)
    algos += (algos.empty() ? "" : ", ") + std::string(librun_algo_name(algo));
  for (int cycle = 0; o.cycles == 0 || cycle < o.cycles; ++cycle)
    for (const librun_dtype_t dtype : o.dtypes)
      for (const librun_op_t op : o.ops)
        for (const std::uint64_t size : sizes_of(o)) {
          if (size % librun_dtype_bytes(dtype) != 0) continue;
          watchdog.doing(fmt::format("{} bytes, {}, {}, {}", size, librun_dtype_name(dtype),
                                     librun_op_name(op), algos));
          for (const Result& result : bench.measure(size, dtype, op)) show(result);
        }
}

std::vector<std::string> notes_of(const Baselines& baselines,
                                  const std::vector<RankPlace>& places) {
  std::vector<std::string> notes = baselines.notes;
  if (any_gpu_is_shared(places))
    notes.push_back("ranks share a GPU: they compete for it, and these are no bandwidths of links");
  if (const char* tuning = std::getenv("LIBRUN_TUNING"); tuning && *tuning)
    notes.push_back(std::string("LIBRUN_TUNING is ") + tuning +
                    "; --stats marks with * what its tables choose");
  return notes;
}

/// Collective. @param table whether people read
void finish_tuning(const Options& o, const RunRecord& record, const ChosenDevice& chosen,
                   bool table) {
  librun::Communicator usual(MPI_COMM_WORLD, chosen.config());
  const Tuned tuned = tune(o, record, [&](const Result& result) {
    return usual.plan(result.count, result.dtype, result.op).algo;
  });
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && !tuned.tables.empty()) {
    add_tables(o.tune_file, tuned.tables);
    if (table) fmt::print("{}", tuning_text(o, tuned));
  }
  usual.close();
}

int run(const Options& o, const MpiSession& session, const ChosenDevice& chosen,
        std::vector<RankPlace> places) {
  Watchdog watchdog("car_bench", o.timeout, session.rank());
  RunRecord record;
  record.start_time = now_text();
  record.places = std::move(places);
  const bool tell = session.is_rank0();
  const bool table = tell && !o.quiet && o.json_file != "-" && o.csv_file != "-";
  Progress progress(o.progress, tell && !table);

  watchdog.doing("create the communicators");
  auto comms = make_communicators(o, chosen);
  Device& device = *chosen.memory;
  Buffers buffers(o, device, comms);
  watchdog.doing("prepare the baselines");
  Baselines baselines = make_baselines(o, device, record.places);
  for (const BaselineColumn& column : baselines.columns)
    record.baseline_titles.push_back(column.title);
  record.notes = notes_of(baselines, record.places);
  Bench bench(o, session.rank(), session.world(), device, comms, buffers, baselines);
  SuspendTiming suspends(comms);
  if (table) fmt::print("{}", header_text(o, record));
  sweep(o, bench, watchdog, [&](const Result& result) {
    record.results.push_back(result);
    if (table) fmt::print("{}", row_text(o, result, session.world()));
    std::fflush(stdout);
    progress.update(
        fmt::format("{} bytes: {:.2f} us", result.size_bytes, result.out_of_place.median_us));
    const bool due = o.suspend_every > 0 &&
                     record.results.size() % static_cast<std::size_t>(o.suspend_every) == 0;
    if (!due) return;
    watchdog.doing("suspend and resume");
    suspends.cycle();
  });
  progress.finish();
  record.phases = suspends.phases();
  watchdog.doing("close the communicators");
  baselines.close();
  buffers.unregister();
  for (librun::Communicator& comm : comms) comm.close();

  record.end_time = now_text();
  const double busbw = average_busbw(record.results, session.world());
  if (table) {
    fmt::print("{}", footer_text(record.results, session.world()));
    if (!record.phases.empty()) fmt::print("{}", suspend_text(record.phases));
    if (session.world() == 1)
      fmt::print("# 1 rank: nothing to reduce; try mpirun -np 8 car_bench\n");
  }
  if (tell && !o.json_file.empty()) write_json(o.json_file, json_text(o, record));
  if (tell && !o.csv_file.empty()) write_json(o.csv_file, csv_text(record));
  if (!o.tune_file.empty() && total_wrong(record.results) == 0)
    finish_tuning(o, record, chosen, table);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw std::runtime_error("cannot write standard output");
  if (total_wrong(record.results) > 0) return kExitFailure;
  // nccl-tests lets noise pass: nine tenths are enough.
  if (busbw < 0.9 * o.min_busbw) {
    if (tell)
      fmt::print(stderr, "car_bench: average bus bandwidth {:.4g} GB/s is below --min-busbw {:g}\n",
                 busbw, o.min_busbw);
    return kExitFailure;
  }
  return kExitOk;
}

/// Rank 0 speaks for all when all have the same to say.
int complain(const MpiSession& session, const std::string& text, int exit_code) {
  if (session.is_rank0()) fmt::print(stderr, "car_bench: {}\n", text);
  return exit_code;
}

int start(const MpiSession& session, int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  const Options& o = parsed.options;
  if (!parsed.run) {
    if (session.is_rank0()) fmt::print(parsed.exit_code ? stderr : stdout, "{}", parsed.text);
    return parsed.exit_code;
  }
  if (const std::string why = wrong_launcher(session.world()); !why.empty() && !o.allow_singletons)
    return complain(session, why, kExitEnvironment);
  if (o.info || o.list) {
    if (session.is_rank0() && o.list) list(o);
    if (session.is_rank0() && o.info && o.json_file.empty())
      fmt::print("{}", info_text(collect_info()));
    if (session.is_rank0() && o.info && !o.json_file.empty())
      write_json(o.json_file, collect_info().dump(2) + "\n");
    return kExitOk;
  }
  // What is measured now must not depend on what was measured before.
  if (!o.tune_file.empty()) unsetenv("LIBRUN_TUNING");
  // Of NCCL's ways, the one that goes through switches is no peer-to-peer; read when it starts.
  if (o.baseline_nccl) setenv("NCCL_NVLS_ENABLE", "0", 0);
  const ChosenDevice device = choose_device(o.device, MPI_COMM_WORLD);
  std::vector<RankPlace> places = gather_places(*device.memory);
  if (const std::string why = refuse(o, *device.memory, places, session.rank()); !why.empty())
    return complain(session, why, kExitEnvironment);
  int writable = kExitOk;
  if (session.is_rank0()) {
    try {
      if (!o.tune_file.empty()) static_cast<void>(read_tuning(o.tune_file));
      for (const std::string& path : {o.json_file, o.csv_file, o.tune_file})
        if (!path.empty()) check_writable(path);
    } catch (const std::runtime_error& error) {
      writable = complain(session, error.what(), kExitEnvironment);
    }
  }
  if (const int agreed = session.agree(writable); agreed != kExitOk) return agreed;
  return run(o, session, device, std::move(places));
}

}  // namespace
}  // namespace car::bench

int main(int argc, char** argv) {
  const car::MpiSession session(&argc, &argv);
  try {
    return session.agree(car::bench::start(session, argc, argv));
  } catch (const librun::Error& error) {
    return session.fail("car_bench", error.what(), car::exit_code_of(error.code()));
  } catch (const std::bad_alloc&) {
    return session.fail("car_bench", "out of memory: use a smaller -e", car::kExitEnvironment);
  } catch (const std::exception& error) {
    return session.fail("car_bench", error.what(), car::kExitEnvironment);
  }
}
