// SPDX-License-Identifier: Apache-2.0
// main() of the tests that run under mpirun. The ranks compare notes after every test case, so that
// a check that fails on one rank is named by rank 0 and never leaves the others waiting for ever.
#define CATCH_CONFIG_RUNNER
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "support/catch.hpp"
#include "support/device.hpp"
#include "support/rank_reports.hpp"

namespace librun_test {
namespace {

constexpr int kAbortCode = 86;
constexpr int kSkipCode = 77;
/// A rank that passed waits longer than any deadline of the library under test.
constexpr std::chrono::seconds kWaitAfterPass{45};
constexpr std::chrono::seconds kWaitAfterFailure{10};

std::unique_ptr<RankReports> reports;

std::string join(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// In one piece, since the launcher mixes what the ranks write.
void tell(const std::string& text) {
  std::cout.flush();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

class RankListener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override { first_failure_.clear(); }

  AssertionEndedResult assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (first_failure_.empty() && !result.isOk()) {
      std::ostringstream text;
      text << result.getSourceInfo() << ": " << result.getExpressionInMacro();
      if (result.hasExpandedExpression()) text << "\n    with " << result.getExpandedExpression();
      if (result.hasMessage()) text << "\n    " << std::string(result.getMessage());
      for (const auto& info : stats.infoMessages) text << "\n    " << info.message;
      first_failure_ = text.str();
    }
    return AssertionEndedResult(true);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const bool failed = stats.totals.assertions.failed > 0;
    if (failed && first_failure_.empty()) first_failure_ = "failed";
    const auto result =
        reports->exchange(first_failure_, failed ? kWaitAfterFailure : kWaitAfterPass);
    const std::string name = name_of(stats);
    for (int rank = 0; rank < reports->world(); ++rank) {
      const std::string& text = result.texts[static_cast<std::size_t>(rank)];
      const bool mine_to_tell = rank == reports->rank() ? !result.missing.empty() : is_teller();
      if (text.empty() || !mine_to_tell) continue;
      tell("rank " + std::to_string(rank) + " failed in \"" + name + "\":\n  " + text + "\n");
      break;
    }
    if (result.missing.empty()) return;
    tell("rank " + std::to_string(reports->rank()) + " ends the job: rank " + join(result.missing) +
         " did not reach the end of \"" + name + "\"\n");
    MPI_Abort(MPI_COMM_WORLD, kAbortCode);
  }

 private:
  static bool is_teller() { return reports->rank() == 0; }

  std::string first_failure_;
};

CATCH_REGISTER_LISTENER(RankListener)

/// Rank 0 reports to the terminal, every other rank to its own file.
std::vector<std::string> with_reporting(int argc, char** argv) {
  std::vector<std::string> args(argv, argv + argc);
  args.insert(args.end(), std::begin(kNoColour), std::end(kNoColour));
  if (reports->rank() == 0) return args;
  args.emplace_back("--out");
  args.push_back(std::filesystem::path(argv[0]).filename().string() + ".np" +
                 std::to_string(reports->world()) + ".rank" + std::to_string(reports->rank()) +
                 ".log");
  return args;
}

int run(int argc, char** argv) {
  const std::vector<std::string> args = with_reporting(argc, argv);
  std::vector<const char*> raw;
  for (const std::string& arg : args) raw.push_back(arg.c_str());
  Catch::Session session;
  int result = session.applyCommandLine(static_cast<int>(raw.size()), raw.data());
  if (result == 0) result = session.run();
  return result;
}

/// @return true when LIBRUN_DEVICE asks for what some rank does not have
bool must_skip() {
  const std::string problem = choose_device();
  int skip = problem.empty() ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &skip, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (!problem.empty() && reports->rank() == 0) tell("skipped: no CUDA here: " + problem + "\n");
  return skip != 0;
}

}  // namespace
}  // namespace librun_test

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  librun_test::reports = std::make_unique<librun_test::RankReports>(MPI_COMM_WORLD);
  int result = librun_test::must_skip() ? librun_test::kSkipCode : librun_test::run(argc, argv);
  MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  librun_test::reports.reset();
  MPI_Finalize();
  return result;
}
