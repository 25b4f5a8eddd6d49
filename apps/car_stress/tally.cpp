// SPDX-License-Identifier: Apache-2.0
#include "car_stress/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace car::stress {

void Durations::add(std::chrono::steady_clock::duration elapsed) {
  us_.push_back(std::chrono::duration<float, std::micro>(elapsed).count());
}

double Durations::percentile_us(double percent) const {
  if (us_.empty()) return 0;
  const auto last = static_cast<double>(us_.size() - 1);
  const auto nth = us_.begin() + static_cast<std::ptrdiff_t>(std::lround(last * percent / 100));
  std::nth_element(us_.begin(), nth, us_.end());
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
