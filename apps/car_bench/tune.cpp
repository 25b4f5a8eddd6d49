// SPDX-License-Identifier: Apache-2.0
#include "car_bench/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

/// Times of two runs differ by about as much; each step more must be worth it.
constexpr double kSlack = 0.02;

/// Out of place and in place, over all types of this width and all operations.
std::vector<MeasuredSize> measured(const std::vector<Result>& results, std::size_t element_bytes,
                                   bool with_zero_copy) {
  std::map<std::uint64_t, MeasuredSize> by_size;
  for (const Result& result : results) {
    if (element_bytes != 0 && librun_dtype_bytes(result.dtype) != element_bytes) continue;
    if (result.algo == LIBRUN_ALGO_ZERO_COPY && !with_zero_copy) continue;
    MeasuredSize& size = by_size[result.size_bytes];
    size.size_bytes = result.size_bytes;
    size.us[result.algo] += result.out_of_place.median_us + result.in_place.median_us;
  }
  std::vector<MeasuredSize> sizes;
  for (const auto& [bytes, size] : by_size) sizes.push_back(size);
  return sizes;
}

std::string steps_text(const std::vector<FittedStep>& steps) {
  std::string text;
  for (const FittedStep& step : steps) {
    const std::string end = step.up_to_bytes   ? " to " + std::to_string(*step.up_to_bytes)
                            : steps.size() > 1 ? " beyond"
                                               : "";
    text += (text.empty() ? "" : ", ") + std::string(librun_algo_name(step.algo)) + end;
  }
  return text;
}

}  // namespace

std::vector<TunedTable> tune(const Options& options, const RunRecord& record) {
  std::set<std::size_t> widths;
  for (const Result& result : record.results) widths.insert(librun_dtype_bytes(result.dtype));
  if (widths.size() == 1) widths = {0};
  const librun_plan_t& place = record.results.front().plan;
  std::vector<TunedTable> tables;
  for (const std::size_t width : widths)
    for (const bool registered : {false, true}) {
      if (registered && !options.registered) continue;
      const Fit fit = fit_steps(measured(record.results, width, registered), kSlack);
      tables.push_back(
          {place.device, place.shared != 0, static_cast<int>(record.places.size()), width,
           registered, fit.steps,
           fmt::format("{}, {}, {}: at most {:.1f} % slower than the fastest of a size",
                       options.command, version_text(), record.start_time,
                       100 * (fit.worst_ratio - 1))});
    }
  return tables;
}

std::string tuning_text(const Options& options, const std::vector<TunedTable>& tables) {
  std::string text = fmt::format("# The fastest by size in bytes, {} {}{}, now in {}:\n",
                                 tables[0].world, tables[0].world == 1 ? "rank" : "ranks",
                                 tables[0].shared ? " that share" : "", options.tune_file);
  for (const TunedTable& table : tables)
    text += fmt::format(
        "#   {}{}: {}\n",
        table.element_bytes ? fmt::format("{} bytes wide, ", table.element_bytes) : "",
        table.registered ? "registered buffers" : "plain buffers", steps_text(table.steps));
  return text + fmt::format("# Use it: export LIBRUN_TUNING={}\n#\n", options.tune_file);
}

}  // namespace car::bench
