// SPDX-License-Identifier: Apache-2.0
#include "car_bench/tuning_fit.hpp"

#include <algorithm>

namespace car::bench {
namespace {

double fastest_us(const MeasuredSize& size) {
  return std::min_element(size.us.begin(), size.us.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

/// For how many sizes from `first` on `algo` is fast enough.
std::size_t reach(const std::vector<MeasuredSize>& sizes, std::size_t first, librun_algo_t algo,
                  double slack) {
  std::size_t end = first;
  while (end < sizes.size() && sizes[end].us.at(algo) <= fastest_us(sizes[end]) * (1 + slack))
    ++end;
  return end - first;
}

}  // namespace

// To go as far as possible with each step gives the fewest: whatever another choice reaches, this
// one has reached too. Of algorithms that reach alike, the fastest of the first size.
Fit fit_steps(const std::vector<MeasuredSize>& sizes, double slack) {
  Fit fit;
  for (std::size_t begin = 0; begin < sizes.size();) {
    std::size_t longest = 0;
    librun_algo_t chosen{};
    for (const auto& [algo, us] : sizes[begin].us) {
      const std::size_t length = reach(sizes, begin, algo, slack);
      const bool faster = longest > 0 && length == longest && us < sizes[begin].us.at(chosen);
      if (length <= longest && !faster) continue;
      longest = length;
      chosen = algo;
    }
    for (std::size_t i = begin; i < begin + longest; ++i)
      fit.worst_ratio = std::max(fit.worst_ratio, sizes[i].us.at(chosen) / fastest_us(sizes[i]));
    begin += longest;
    const std::uint64_t last = sizes[begin - 1].size_bytes;
    fit.steps.push_back(
        {begin < sizes.size() ? (last + sizes[begin].size_bytes) / 2 : last, chosen});
  }
  return fit;
}

}  // namespace car::bench
