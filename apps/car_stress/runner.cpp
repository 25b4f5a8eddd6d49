// SPDX-License-Identifier: Apache-2.0
#include "car_stress/runner.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "car_stress/probes.hpp"
#include "common/verify.hpp"

namespace car::stress {
namespace {

enum Stream : std::uint64_t { kLaunch = 8, kClose, kBuffers = 16 };

/// The renewal that a cycle itself makes; even numbers are those at the start of an epoch.
std::uint64_t in_cycle(std::uint64_t cycle) { return 2 * cycle + 1; }

}  // namespace

Runner::Runner(const Options& options, const ChosenDevice& device, const MpiGroups& mpi, int world,
               DriverCheckpoint* checkpoint, Journal& journal, Watchdog& watchdog, Tally& tally,
               Report& report)
    : options_(options),
      limits_(limits_of(options, world)),
      device_(device),
      mpi_(mpi),
      journal_(journal),
      watchdog_(watchdog),
      tally_(tally),
      report_(report),
      agreement_(mpi.control(), [this] { groups_[0]->comm().check(); }),
      caller_(*device.memory, options.max_bytes, journal),
      transitions_(*device.memory, mpi, options.checkpoint == Checkpoint::fake,
                   checkpoint ? [this, checkpoint] { checkpoint->run(agreement_); }
                              : std::function<void()>(),
                   journal, tally),
      probe_(*device.memory) {}

void Runner::run() {
  cycle_ = options_.first_cycle;
  journal_.begin_cycle(cycle_);
  journal_.doing("create of the first communicator");
  groups_.push_back(
      std::make_unique<Group>(0, plan_first_group(limits_), mpi_, device_, watchdog_));
  if (limits_.graphs > 0)
    graphs_.push_back(
        std::make_unique<RecordedGraph>(0, *groups_[0], plan_first_graph(limits_), journal_));

  for (bool stop = false; !stop; ++cycle_) {
    const CycleNotes notes = run_cycle(cycle_);
    const std::string finding =
        notes.wrong ? agreement_.first_text(journal_.first_of_cycle()) : std::string();
    report_.cycle_done(cycle_, notes, finding);
    stop = notes.stop || (notes.wrong && !options_.keep_going);
  }
  --cycle_;
  end_epoch();
  journal_.doing("close of the first communicator");
  for (auto& graph : graphs_) graph->close();
  graphs_.clear();
  groups_[0]->close();
  groups_.clear();
}

void Runner::renew_buffers(int group, std::uint64_t renewal) {
  Group& of = *groups_[static_cast<std::size_t>(group)];
  journal_.doing("registration with " + of.name());
  of.drop_buffers();
  of.register_buffers(*groups_[0], options_.max_bytes + GuardedRange::kSlackBytes,
                      Random(options_.seed, kBuffers + static_cast<unsigned>(group), renewal));
}

/// Which renewal the buffers of the group come from, also when the run starts inside an epoch.
std::uint64_t Runner::last_renewal(int group) const {
  const std::uint64_t epoch_start = cycle_ - cycle_ % kCyclesPerEpoch;
  for (std::uint64_t cycle = cycle_; cycle-- > epoch_start;)
    if (plan_cycle(limits_, epoch_plan_, cycle).churn_group == group) return in_cycle(cycle);
  return 2 * epoch_start;
}

void Runner::begin_epoch(std::uint64_t epoch) {
  if (epoch_ == epoch) return;
  end_epoch();
  epoch_ = epoch;
  epoch_plan_ = plan_epoch(limits_, epoch);
  for (const GroupPlan& plan : epoch_plan_.groups) {
    const int index = static_cast<int>(groups_.size());
    journal_.doing("create of comm " + std::to_string(index) + " (" + describe(plan) + ")");
    // Who is gone already would be waited for until the deadline.
    groups_[0]->comm().check();
    groups_.push_back(std::make_unique<Group>(index, plan, mpi_, device_, watchdog_));
  }
  for (int i = 0; i < limits_.groups; ++i) renew_buffers(i, last_renewal(i));
  for (const GraphPlan& plan : epoch_plan_.graphs) {
    Group& group = *groups_[static_cast<std::size_t>(plan.group)];
    graphs_.push_back(
        std::make_unique<RecordedGraph>(static_cast<int>(graphs_.size()), group, plan, journal_));
  }
}

void Runner::end_epoch() {
  while (graphs_.size() > 1) {
    journal_.doing("close of " + graphs_.back()->name());
    graphs_.back()->close();
    graphs_.pop_back();
  }
  Random random(options_.seed, kClose, epoch_.value_or(0));
  while (groups_.size() > 1) {
    Group& group = *groups_.back();
    const bool suspend_first = random.one_in(3);
    journal_.doing("close of " + group.name());
    if (suspend_first && group.is_member()) group.comm().suspend();
    group.close();
    groups_.pop_back();
  }
  look_at_holdings();
}

/// When only what lives as long as the run is there, so that all samples are of the same.
void Runner::look_at_holdings() {
  journal_.doing("count of what is held");
  groups_[0]->drop_buffers();
  transitions_.vacate_all();
  tally_.held.add(probe_.look());
}

CycleNotes Runner::run_cycle(std::uint64_t cycle) {
  journal_.begin_cycle(cycle);
  launches_ = 0;
  hash_ = mix64(cycle);
  const std::uint64_t findings = journal_.findings();
  begin_epoch(cycle / kCyclesPerEpoch);
  const CyclePlan plan = plan_cycle(limits_, epoch_plan_, cycle);

  kill_if_asked(plan, 0);
  make_calls(plan.before);
  kill_if_asked(plan, 1);
  launch_graphs();
  for (const ProbePlan& probe : plan.probes) {
    run_probe(*groups_[static_cast<std::size_t>(probe.group)], probe, journal_);
    ++tally_.refusals;
  }
  kill_if_asked(plan, 2);
  const int moved = transitions_.run(
      groups_, plan, [&](std::vector<Group*>& suspended) { while_suspended(plan, suspended); });
  if (plan.transition == Transition::none) kill_if_asked(plan, 3);
  if (plan.churn_group >= 0) renew_buffers(plan.churn_group, in_cycle(cycle));
  kill_if_asked(plan, 4);
  launch_graphs();
  make_calls(plan.after);
  journal_.doing("agreement at the end of the cycle");
  const CycleNotes mine{journal_.findings() != findings, moved > 0,
                        time_is_up(cycle - options_.first_cycle + 1), hash_};
  const CycleNotes all = agreement_.combine(mine);
  if (all.hash != mine.hash) journal_.wrong("the ranks do not hold the same results");
  return all;
}

void Runner::make_calls(const std::vector<CallPlan>& calls) {
  for (const CallPlan& call : calls) {
    Group& group = *groups_[static_cast<std::size_t>(call.group)];
    const std::uint64_t hash = caller_.run(group, call);
    if (group.spans_the_run()) hash_ = mix64(hash_ ^ hash);
  }
  tally_.calls = caller_.calls();
}

void Runner::launch_graphs() {
  for (auto& graph : graphs_) {
    graph->launch(mix64(options_.seed ^ mix64(cycle_ * 64 + kLaunch + launches_++)));
    ++tally_.launches;
  }
}

void Runner::while_suspended(const CyclePlan& plan, std::vector<Group*>& suspended) {
  kill_if_asked(plan, 3);
  const auto is_suspended = [&](const Group* group) {
    return std::find(suspended.begin(), suspended.end(), group) != suspended.end();
  };
  if (plan.calls_while_suspended) {
    for (Group* const group : suspended) probe_suspended(*group, journal_);
    for (auto& graph : graphs_)
      if (is_suspended(&graph->group())) graph->expect_refusal();
  }
  if (plan.churn_while_suspended && plan.churn_group >= 0) {
    Group& group = *groups_[static_cast<std::size_t>(plan.churn_group)];
    journal_.doing("unregistration from suspended " + group.name());
    if (is_suspended(&group)) group.drop_buffers();
  }
  make_calls(plan.during);
}

void Runner::kill_if_asked(const CyclePlan& plan, int step) {
  if (!options_.kill || options_.kill->rank != journal_.rank()) return;
  if (options_.kill->cycle != cycle_ || plan.kill_step != step) return;
  std::fprintf(stderr, "car_stress: %s: kills itself, as --kill-rank asks\n",
               journal_.where().c_str());
  std::fflush(stderr);
  raise(SIGKILL);
}

bool Runner::time_is_up(std::uint64_t done) const {
  if (options_.cycles != 0 && done >= options_.cycles) return true;
  if (options_.duration.count() == 0) return false;
  return tally_.elapsed_s() >= static_cast<double>(options_.duration.count());
}

int Runner::culprit(const librun::Error& error) {
  if (error.rank() < 0) return -1;
  for (const auto& group : groups_) {
    if (!group->is_member() || group->plan().members == Members::world) continue;
    if (librun_check(group->comm().get()) == LIBRUN_OK) continue;
    // Each communicator keeps its own first cause: the one with this text has thrown it.
    if (std::string(librun_last_error()).find(error.text()) != std::string::npos)
      return group->run_rank(error.rank());
  }
  return -1;
}

}  // namespace car::stress
