// SPDX-License-Identifier: Apache-2.0
#include "car_stress/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace car::stress {
namespace {

constexpr std::size_t kMostDurations = std::size_t{1} << 15;

}  // namespace

void Durations::add(std::chrono::steady_clock::duration elapsed) {
  const float us = std::chrono::duration<float, std::micro>(elapsed).count();
  longest_us_ = std::max(longest_us_, us);
  if (added_++ % stride_ != 0) return;
  if (us_.empty()) us_.reserve(kMostDurations);
  if (us_.size() == kMostDurations) {
    for (std::size_t i = 0; i < kMostDurations / 2; ++i) us_[i] = us_[2 * i];
    us_.resize(kMostDurations / 2);
    stride_ *= 2;
  }
  us_.push_back(us);
}

double Durations::percentile_us(double percent) const {
  if (us_.empty()) return 0;
  std::vector<float> us = us_;
  const auto last = static_cast<double>(us.size() - 1);
  const auto nth = us.begin() + static_cast<std::ptrdiff_t>(std::lround(last * percent / 100));
  std::nth_element(us.begin(), nth, us.end());
  return static_cast<double>(*nth);
}

double Tally::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string describe_times(const Tally& tally) {
  const auto ms = [](const Durations& durations, double percent) {
    return durations.percentile_us(percent) / 1000;
  };
  return fmt::format("suspend p50 {:.1f} ms p99 {:.1f} ms  resume p50 {:.1f} ms p99 {:.1f} ms",
                     ms(tally.suspend, 50), ms(tally.suspend, 99), ms(tally.resume, 50),
                     ms(tally.resume, 99));
}

}  // namespace car::stress
