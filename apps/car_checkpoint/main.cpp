// SPDX-License-Identifier: Apache-2.0
// car_checkpoint: real checkpoints of the ranks of one node.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "car_checkpoint/interrupts.hpp"
#include "car_checkpoint/options.hpp"
#include "car_checkpoint/report.hpp"
#include "car_checkpoint/sequence.hpp"
#include "car_checkpoint/targets.hpp"
#include "common/exit_codes.hpp"
#include "common/json_file.hpp"

namespace car::checkpoint {
namespace {

/// Ends the work with an exit code and a text for stderr.
struct Ending {
  int exit_code;
  std::string text;
};

class Work {
 public:
  Work(const Options& options, Record& record) : options_(options), record_(record) {}

  /// @throws Ending
  void run();

 private:
  void refuse_hindered(bool after_lock);
  void refuse_wrong_state();
  void step(Step step);
  void cycle();
  void note_memory(const char* when);
  [[noreturn]] void end_failed(const std::string& what);
  bool wants_blockers() const {
    return options_.action != Action::restore && options_.action != Action::unlock;
  }

  const Options& options_;
  Record& record_;
  Interrupts interrupts_;
  GpuUsageMeter meter_;
  std::unique_ptr<Sequence> sequence_;
};

void Work::refuse_hindered(bool after_lock) {
  std::string text;
  for (Target& target : record_.targets) {
    if (after_lock) target = look_at(target.pid);
    for (const std::string& line : target.hindrances(wants_blockers()))
      text += fmt::format("car_checkpoint: {}: {}\n", target.name(), line);
  }
  if (text.empty()) return;
  if (after_lock) sequence_->undo();
  record_.members = sequence_ ? sequence_->members() : std::vector<Member>{};
  throw Ending{kExitFailure,
               text + (after_lock ? "car_checkpoint: refused; unlocked again\n"
                                  : "car_checkpoint: refused, nothing was touched\n")};
}

/// What a process must be in for the first step.
void Work::refuse_wrong_state() {
  const CudaState wanted =
      options_.action == Action::restore ? CudaState::checkpointed
      : options_.action == Action::checkpoint || options_.action == Action::unlock
          ? CudaState::locked
          : CudaState::running;
  std::string text;
  for (const Member& member : sequence_->members()) {
    if (member.state == wanted && member.error.empty()) continue;
    text += fmt::format("car_checkpoint: {}: {}\n", member.name,
                        member.error.empty()
                            ? fmt::format("CUDA is {} there, not {}", car::name_of(member.state),
                                          car::name_of(wanted))
                            : member.error);
  }
  if (text.empty()) return;
  throw Ending{sequence_->any_timed_out() ? kExitTimeout : kExitFailure,
               text + "car_checkpoint: refused, nothing was touched\n"};
}

void Work::note_memory(const char* when) {
  record_.moments.push_back({when, meter_.read()});
  if (options_.json_file.empty())
    fmt::print("{:<11} GPU memory in use: {}\n", when, describe(record_.moments.back().usage));
  std::fflush(stdout);
}

void Work::end_failed(const std::string& what) {
  std::string text = "car_checkpoint: " + what + "\n";
  for (const std::string& line : summary_of(sequence_->members()))
    text += "car_checkpoint: " + line + "\n";
  throw Ending{sequence_->any_timed_out() ? kExitTimeout : kExitFailure, text};
}

void Work::step(Step step) {
  if (!sequence_->run(step)) end_failed(fmt::format("the {} failed", name_of(step)));
}

void Work::cycle() {
  step(Step::lock);
  // One may have begun to resume while the others were being locked.
  refuse_hindered(true);
  if (interrupts_.any()) {
    sequence_->undo();
    end_failed("interrupted before the checkpoint");
  }
  step(Step::checkpoint);
  note_memory("held");
  interrupts_.hold(options_.hold);
  step(Step::restore);
  step(Step::unlock);
}

void Work::run() {
  record_.targets = find_targets(options_);
  if (record_.targets.empty() && !options_.list)
    throw Ending{
        kExitEnvironment,
        options_.job.empty()
            ? "car_checkpoint: no process of yours uses librun\n"
            : fmt::format("car_checkpoint: no process of yours belongs to job {}\n", options_.job)};
  if (!options_.list) refuse_hindered(false);

  std::shared_ptr<CheckpointDriver> driver;
  std::vector<GpuMove> moves;
  try {
    driver = make_checkpoint_driver();
    if (!options_.gpu_map.empty()) moves = parse_gpu_map(options_.gpu_map, driver->gpus());
  } catch (const CheckpointError& error) {
    if (options_.list) return;
    throw Ending{kExitEnvironment,
                 fmt::format("car_checkpoint: cannot checkpoint here: {}\n", error.what())};
  } catch (const std::invalid_argument& error) {
    throw Ending{kExitUsage, fmt::format("car_checkpoint: --gpu-map: {}\n", error.what())};
  }
  std::vector<Member> members;
  for (const Target& target : record_.targets) {
    if (target.existence != Existence::here) continue;
    Member& member = members.emplace_back();
    member.pid = target.pid;
    member.name = target.name();
  }
  const auto show = [this](const StepResult& result, const std::vector<Member>& now) {
    record_.steps.push_back(result);
    record_.members = now;
    if (options_.json_file.empty()) fmt::print("{}", line_of(result));
    std::fflush(stdout);
  };
  sequence_ = std::make_unique<Sequence>(driver, std::move(members), options_.timeout,
                                         std::move(moves), show);
  sequence_->look();
  record_.members = sequence_->members();
  if (options_.list) return;
  refuse_wrong_state();
  note_memory("before");
  if (options_.action == Action::cycle)
    cycle();
  else
    step(static_cast<Step>(static_cast<int>(options_.action) - 1));
  note_memory("after");
}

int run(int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  const Options& options = parsed.options;
  if (!parsed.run) {
    std::fputs(parsed.text.c_str(), parsed.exit_code == kExitOk ? stdout : stderr);
    return parsed.exit_code;
  }
  Record record;
  int exit_code = kExitOk;
  try {
    if (!options.json_file.empty() && options.json_file != "-") check_writable(options.json_file);
    Work(options, record).run();
  } catch (const Ending& ending) {
    exit_code = ending.exit_code;
    record.error = ending.text;
    std::fputs(ending.text.c_str(), stderr);
  }
  if (options.json_file.empty())
    fmt::print("{}", table_of(record.targets, record.members));
  else
    write_json(options.json_file, json_of(record, options, exit_code));
  std::fflush(nullptr);
  // A thread may still wait for the driver.
  if (exit_code == kExitTimeout) std::_Exit(exit_code);
  return exit_code;
}

}  // namespace
}  // namespace car::checkpoint

int main(int argc, char** argv) {
  try {
    return car::checkpoint::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "car_checkpoint: {}\n", error.what());
    return car::kExitEnvironment;
  }
}
