// SPDX-License-Identifier: Apache-2.0
// What rank 0 shows during and after a run: progress, the final line, JSON and JUnit files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "car_stress/agreement.hpp"
#include "car_stress/options.hpp"
#include "car_stress/tally.hpp"
#include "common/progress.hpp"

namespace car::stress {

class Report {
 public:
  Report(const Options& options, int rank, int world, Tally& tally);

  /// One line that says what is going to run.
  void start();
  /// A line of the header.
  void note(const std::string& line);
  /// @param finding the first one of the cycle
  void cycle_done(std::uint64_t cycle, const CycleNotes& notes, const std::string& finding);
  /// What each rank holds, by rank.
  void compare(std::vector<HoldingsTrend> trends) { trends_ = std::move(trends); }
  /// The final line and the files. @param error what ended the run early, "" when nothing did
  void finish(const std::string& error, int exit_code);

 private:
  std::string start_line() const;
  std::string progress_line() const;
  std::string final_line(const std::string& error) const;
  std::string held_lines() const;
  std::string findings(std::uint64_t begin, std::uint64_t end) const;
  std::string json(const std::string& error, int exit_code) const;
  std::string junit(const std::string& error) const;

  const Options& options_;
  const bool is_rank0_;
  const int world_;
  std::FILE* const stream_;  ///< for people: not where JSON goes
  Tally& tally_;
  Progress progress_;
  std::vector<HoldingsTrend> trends_;
};

}  // namespace car::stress
