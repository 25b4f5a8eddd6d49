// SPDX-License-Identifier: Apache-2.0
#include "car_bench/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "car_bench/table.hpp"
#include "common/info.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

using nlohmann::json;

bool starts_with_one_of(const std::string& name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

/// Only what concerns the run: an environment may hold secrets, and the launcher's own words name
/// folders and addresses.
json environment() {
  json values = json::object();
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool of_launcher =
        starts_with_one_of(name, {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix",
                                  "OMPI_MCA_initial_wdir", "OMPI_MCA_mpi_oversubscribe"});
    if (!of_launcher && starts_with_one_of(name, {"LIBRUN_", "OMPI_MCA_", "SLURM_", "NCCL_",
                                                  "CUDA_VISIBLE_DEVICES"}))
      values[name] = text.substr(name.size() + 1);
  }
  return values;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

json timing_json(const Timing& timing, std::uint64_t size_bytes, int world) {
  return {{"time", rounded(timing.median_us)},
          {"alg_bw", rounded(timing.alg_gbps(size_bytes))},
          {"bus_bw", rounded(timing.bus_gbps(size_bytes, world))},
          {"percentiles_us",
           {{"p5", rounded(timing.p5_us)},
            {"p50", rounded(timing.median_us)},
            {"p95", rounded(timing.p95_us)}}}};
}

json device_json(std::size_t rank, const RankPlace& place) {
  json device{
      {"rank", rank}, {"host", place.host}, {"pid", place.pid}, {"device", place.device.name}};
  if (place.ordinal < 0) return device;
  device["ordinal"] = place.ordinal;
  device["bus_id"] = place.device.bus_id;
  return device;
}

json result_json(const Result& r, int world) {
  json row{{"size", r.size_bytes},
           {"count", r.count},
           {"type", type_text(r.dtype)},
           {"redop", librun_op_name(r.op)},
           {"root", -1},
           {"algo", librun_algo_name(r.algo)},
           {"plan",
            {{"algo", librun_algo_name(r.plan.algo)},
             {"blocks", r.plan.blocks},
             {"threads", r.plan.threads},
             {"tuned", r.plan.tuned != 0}}},
           {"iterations", r.iterations},
           {"out_of_place", timing_json(r.out_of_place, r.size_bytes, world)},
           {"in_place", timing_json(r.in_place, r.size_bytes, world)}};
  row["out_of_place"]["nwrong"] = r.out_of_place.wrong;
  row["in_place"]["nwrong"] = r.in_place.wrong;
  for (const auto& [name, timing] : r.baselines) {
    if (!timing) continue;
    json entry = timing_json(*timing, r.size_bytes, world);
    const bool widened = name == "mpi" && is_half(r.dtype);
    entry["type"] = type_text(widened ? LIBRUN_FLOAT32 : r.dtype);
    entry["ratio"] =
        timing->median_us > 0 ? rounded(r.out_of_place.median_us / timing->median_us) : 0;
    row["baseline"][name] = entry;
  }
  return row;
}

}  // namespace

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string json_text(const Options& options, const RunRecord& record) {
  const int world = static_cast<int>(record.places.size());
  if (options.json_lines) {
    std::string lines;
    for (const Result& result : record.results) lines += result_json(result, world).dump() + "\n";
    return lines;
  }
  json devices = json::array();
  for (std::size_t rank = 0; rank < record.places.size(); ++rank)
    devices.push_back(device_json(rank, record.places[rank]));
  json results = json::array();
  for (const Result& result : record.results) results.push_back(result_json(result, world));
  json phases = json::array();
  for (const PhaseSamples& phase : record.phases)
    phases.push_back({{"transition", phase.transition}, {"phase", phase.name}, {"us", phase.us}});
  const std::uint64_t wrong = total_wrong(record.results);
  const json report{
      {"schema", "librun.bench/1"},
      {"version", version_text()},
      {"start_time", record.start_time},
      {"end_time", record.end_time},
      {"args", options.command},
      {"config",
       {{"ranks", world},
        {"seed", options.seed},
        {"graph", options.graph_calls},
        {"registered", options.registered},
        {"average", static_cast<int>(options.average)},
        {"notes", record.notes},
        {"environment", environment()}}},
      {"devices", devices},
      {"results", results},
      {"suspend", phases},
      {"out_of_bounds", {{"count", wrong}, {"okay", wrong == 0}}},
      {"average_bus_bandwidth", {{"bandwidth", average_busbw(record.results, world)}}}};
  return report.dump(2) + "\n";
}

std::string csv_text(const RunRecord& record) {
  const int world = static_cast<int>(record.places.size());
  std::string text = "size,count,type,redop,algo,place,time_us,p5_us,p95_us,alg_bw,bus_bw,wrong\n";
  for (const Result& r : record.results) {
    const auto row = [&](const char* algo, const char* place, const Timing& timing) {
      text +=
          fmt::format("{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{}\n", r.size_bytes,
                      r.count, type_text(r.dtype), librun_op_name(r.op), algo, place,
                      timing.median_us, timing.p5_us, timing.p95_us, timing.alg_gbps(r.size_bytes),
                      timing.bus_gbps(r.size_bytes, world), timing.wrong);
    };
    row(librun_algo_name(r.algo), "out_of_place", r.out_of_place);
    row(librun_algo_name(r.algo), "in_place", r.in_place);
    for (const auto& [name, timing] : r.baselines)
      if (timing) row(name.c_str(), "out_of_place", *timing);
  }
  return text;
}

}  // namespace car::bench
