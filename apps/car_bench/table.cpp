// SPDX-License-Identifier: Apache-2.0
#include "car_bench/table.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

/// Four digits that matter, whatever the magnitude.
std::string number(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string timing_text(const Timing& timing, std::uint64_t size_bytes, int world, bool checked) {
  return fmt::format(
      "{:>9} {:>7} {:>7} {:>6}", number(timing.median_us), number(timing.alg_gbps(size_bytes)),
      number(timing.bus_gbps(size_bytes, world)), checked ? std::to_string(timing.wrong) : "N/A");
}

std::string place_text(std::size_t rank, const RankPlace& place) {
  const bool on_host = place.ordinal < 0;
  return fmt::format("#  Rank {:2} Group  0 Pid {:6} on {} device {:2} [{}]{}\n", rank, place.pid,
                     place.host, on_host ? 0 : place.ordinal,
                     on_host ? place.device.name : place.device.bus_id,
                     on_host ? "" : " " + place.device.name);
}

const char* average_text(Average average) {
  static const char* const kTexts[] = {"of rank 0", "mean over ranks", "min over ranks",
                                       "max over ranks"};
  return kTexts[static_cast<int>(average)];
}

}  // namespace

std::string type_text(librun_dtype_t dtype) {
  switch (dtype) {
    case LIBRUN_FLOAT16:
      return "half";
    case LIBRUN_FLOAT32:
      return "float";
    case LIBRUN_FLOAT64:
      return "double";
    default:
      return librun_dtype_name(dtype);
  }
}

std::string header_text(const Options& o, const RunRecord& record) {
  std::string notes;
  for (const std::string& note : record.notes) notes += "# " + note + "\n";
  if (o.osu) return "# librun all-reduce latency\n" + notes + "# Size          Avg Latency(us)\n";
  const std::vector<RankPlace>& places = record.places;
  std::string text = fmt::format(
      "# {}\n# {} {}, {} to {} bytes, {}, {}, times {}\n#\n", version_text(), places.size(),
      places.size() == 1 ? "rank" : "ranks", o.min_bytes, o.max_bytes,
      o.graph_calls ? fmt::format("graphs of {} calls", o.graph_calls) : std::string("eager"),
      o.registered ? "registered buffers" : "plain buffers", average_text(o.average));
  for (std::size_t rank = 0; rank < places.size(); ++rank) text += place_text(rank, places[rank]);
  text += notes;
  std::string baselines;
  for (const std::string& title : record.baseline_titles)
    baselines += fmt::format(" {:>9} {:>6}", title, "ratio");
  const std::string more = fmt::format(
      "{}{}{}{}", o.algos.size() > 1 ? "      algo" : "", baselines,
      o.stats ? "    p5(us)   p95(us)     takes blocks" : "", o.timestamps ? "      time" : "");
  text += fmt::format(
      "#\n#{:>57}{:>32}{:>33}\n"
      "#{:>11} {:>13} {:>9} {:>7} {:>7}  {:>9} {:>7} {:>7} {:>6}  {:>9} {:>7} {:>7} {:>6}{}\n"
      "#{:>11} {:>13} {:>9} {:>7} {:>7}  {:>9} {:>7} {:>7} {:>6}  {:>9} {:>7} {:>7}\n",
      "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time", "algbw",
      "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", more, "(B)", "(elements)", "", "", "",
      "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)");
  if (o.baseline_mpi && std::any_of(o.dtypes.begin(), o.dtypes.end(), is_half))
    text += "# MPI has no 16-bit floats: mpi(us) is MPI_FLOAT of the same count\n";
  return text;
}

std::string row_text(const Options& o, const Result& r, int world) {
  if (o.osu) return fmt::format("{:<16} {:>14.2f}\n", r.size_bytes, r.out_of_place.median_us);
  std::string row = fmt::format(" {:>11} {:>13} {:>9} {:>7} {:>7}  {}  {}", r.size_bytes, r.count,
                                type_text(r.dtype), librun_op_name(r.op), -1,
                                timing_text(r.out_of_place, r.size_bytes, world, o.checks > 0),
                                timing_text(r.in_place, r.size_bytes, world, o.checks > 0));
  if (o.algos.size() > 1) row += fmt::format(" {:>9}", librun_algo_name(r.algo));
  for (const auto& [name, timing] : r.baselines)
    row += timing ? fmt::format(" {:>9} {:>6.2f}", number(timing->median_us),
                                r.out_of_place.median_us / std::max(timing->median_us, 1e-9))
                  : fmt::format(" {:>9} {:>6}", "N/A", "N/A");
  if (o.stats)
    row += fmt::format(" {:>9} {:>9} {:>9} {:>6}", number(r.out_of_place.p5_us),
                       number(r.out_of_place.p95_us),
                       std::string(librun_algo_name(r.plan.algo)) + (r.plan.tuned ? "*" : ""),
                       r.plan.blocks > 0 ? std::to_string(r.plan.blocks) : "-");
  if (o.timestamps) row += fmt::format("  {:%H:%M:%S}", fmt::localtime(std::time(nullptr)));
  const bool red = o.color && r.out_of_place.wrong + r.in_place.wrong > 0;
  return red ? "\033[31m" + row + "\033[0m\n" : row + "\n";
}

std::uint64_t total_wrong(const std::vector<Result>& results) {
  std::uint64_t wrong = 0;
  for (const Result& result : results) wrong += result.out_of_place.wrong + result.in_place.wrong;
  return wrong;
}

double average_busbw(const std::vector<Result>& results, int world) {
  double sum = 0;
  for (const Result& result : results)
    sum += result.out_of_place.bus_gbps(result.size_bytes, world) +
           result.in_place.bus_gbps(result.size_bytes, world);
  return results.empty() ? 0 : sum / (2 * static_cast<double>(results.size()));
}

std::string footer_text(const std::vector<Result>& results, int world) {
  const std::uint64_t wrong = total_wrong(results);
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.6g}\n#\n", wrong,
                     wrong ? "FAILED" : "OK", average_busbw(results, world));
}

std::string suspend_text(const std::vector<PhaseSamples>& phases) {
  std::string text = fmt::format("#\n# {:<9} {:<12} {:>6} {:>10} {:>10} {:>10}\n", "transition",
                                 "phase", "times", "p50(us)", "p95(us)", "max(us)");
  for (const PhaseSamples& phase : phases) {
    std::vector<double> us = phase.us;
    std::sort(us.begin(), us.end());
    const auto at = [&](double fraction) {
      return us[static_cast<std::size_t>(fraction * static_cast<double>(us.size() - 1) + 0.5)];
    };
    text += fmt::format("# {:<9} {:<12} {:>6} {:>10.0f} {:>10.0f} {:>10.0f}\n", phase.transition,
                        phase.name, us.size(), at(0.5), at(0.95), at(1.0));
  }
  return text;
}

}  // namespace car::bench
