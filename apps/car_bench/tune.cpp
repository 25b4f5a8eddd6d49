// SPDX-License-Identifier: Apache-2.0
#include "car_bench/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car::bench {
namespace {

/// Times of two runs differ by about as much; each step more must be worth it. More where the fit
/// would be too fine to be anything but noise.
constexpr double kSlack = 0.03;
constexpr std::size_t kMostSteps = 12;

/// Out of place and in place, over all types of this width and all operations.
std::vector<MeasuredSize> measured(const std::vector<Result>& results, std::size_t element_bytes,
                                   bool with_zero_copy) {
  using Row = std::tuple<std::uint64_t, librun_algo_t, librun_dtype_t, librun_op_t>;
  std::map<Row, double> fastest_us;
  for (const Result& result : results) {
    if (librun_dtype_bytes(result.dtype) != element_bytes || result.size_bytes == 0) continue;
    if (result.algo == LIBRUN_ALGO_ZERO_COPY && !with_zero_copy) continue;
    const double us = result.out_of_place.median_us + result.in_place.median_us;
    const auto [row, is_new] =
        fastest_us.try_emplace({result.size_bytes, result.algo, result.dtype, result.op}, us);
    if (!is_new) row->second = std::min(row->second, us);
  }
  std::map<std::uint64_t, MeasuredSize> by_size;
  for (const auto& [row, us] : fastest_us) {
    MeasuredSize& size = by_size[std::get<0>(row)];
    size.size_bytes = std::get<0>(row);
    size.us[std::get<1>(row)] += us;
  }
  std::vector<MeasuredSize> sizes;
  for (const auto& [bytes, size] : by_size) sizes.push_back(size);
  return sizes;
}

Fit coarse_fit(const std::vector<MeasuredSize>& sizes) {
  Fit fit = fit_steps(sizes, kSlack);
  for (double slack = 2 * kSlack; fit.steps.size() > kMostSteps; slack *= 2)
    fit = fit_steps(sizes, slack);
  return fit;
}

std::string steps_text(const Fit& fit) {
  std::string text;
  for (const FittedStep& step : fit.steps)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", librun_algo_name(step.algo),
                        size_text(step.up_to_bytes));
  return fmt::format("{}; {:.1f} % off the fastest at most", text, 100 * (fit.worst_ratio - 1));
}

/// How much slower librun's own choice is, by these measurements: the mean over the sizes, and the
/// most, in percent.
std::string gain_text(const std::vector<MeasuredSize>& sizes, const Fit& fit,
                      const std::map<std::uint64_t, librun_algo_t>& usual) {
  double log_sum = 0;
  double most = 1;
  for (const MeasuredSize& size : sizes) {
    const auto step = std::find_if(fit.steps.begin(), fit.steps.end(), [&](const FittedStep& one) {
      return size.size_bytes <= one.up_to_bytes;
    });
    const auto own = size.us.find(usual.at(size.size_bytes));
    if (own == size.us.end()) return "";
    const double ratio = own->second / size.us.at(step->algo);
    log_sum += std::log(ratio);
    most = std::max(most, ratio);
  }
  const double mean = std::exp(log_sum / static_cast<double>(sizes.size()));
  return fmt::format("librun's own choice is {:.0f} % slower on average, {:.0f} % at most{}",
                     100 * (mean - 1), 100 * (most - 1),
                     mean < 1 + kSlack ? ": little to gain from this table" : "");
}

}  // namespace

Tuned tune(const Options& options, const RunRecord& record,
           const std::function<librun_algo_t(const Result&)>& usual) {
  std::set<std::size_t> widths;
  for (const Result& result : record.results) widths.insert(librun_dtype_bytes(result.dtype));
  const librun_plan_t& place = record.results.front().plan;
  Tuned tuned;
  for (const std::size_t width : widths)
    for (const bool registered : {false, true}) {
      if (registered && !options.registered) continue;
      const std::vector<MeasuredSize> sizes = measured(record.results, width, registered);
      if (sizes.empty()) continue;
      std::map<std::uint64_t, librun_algo_t> own_choice;
      for (const Result& result : record.results)
        if (librun_dtype_bytes(result.dtype) == width)
          own_choice[result.size_bytes] = usual(result);
      const Fit fit = coarse_fit(sizes);
      // Below the smallest size there is a few bytes' call, which is much like it.
      const std::uint64_t from = sizes[0].size_bytes <= 16 ? 0 : sizes[0].size_bytes;
      tuned.tables.push_back(
          {place.device, place.shared != 0, static_cast<int>(record.places.size()), width,
           registered, from, fit.steps,
           fmt::format("{}, {}, {}", options.command, version_text(), record.start_time)});
      const std::string gain = registered ? "" : gain_text(sizes, fit, own_choice);
      tuned.texts.push_back(fmt::format("{} bytes wide, {} buffers: {}{}{}", width,
                                        registered ? "registered" : "plain", steps_text(fit),
                                        gain.empty() ? "" : "\n#     ", gain));
    }
  return tuned;
}

std::string tuning_text(const Options& options, const Tuned& tuned) {
  const TunedTable& first = tuned.tables.front();
  const std::string path = std::filesystem::absolute(options.tune_file).lexically_normal().string();
  std::string text = fmt::format(
      "# The fastest by size, {} {}{}, the best of {} {}; steps end midway between two sizes:\n",
      first.world, first.world == 1 ? "rank" : "ranks",
      !first.shared            ? ""
      : first.device == "host" ? " that share cores"
                               : " that share a GPU",
      options.cycles, options.cycles == 1 ? "cycle" : "cycles");
  for (const std::string& line : tuned.texts) text += "#   " + line + "\n";
  return text + fmt::format("# Use it on all ranks: export LIBRUN_TUNING={}\n#\n", path);
}

}  // namespace car::bench
