// SPDX-License-Identifier: Apache-2.0
#include "car_stress/transitions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "car_stress/probes.hpp"
#include "common/host_copy.hpp"
#include "common/verify.hpp"

namespace car::stress {
namespace {

constexpr std::size_t kHashedBytes = std::size_t{16} << 10;

/// Of the user's own memory, which must survive.
std::uint64_t hash_contents(Group& group) {
  RegisteredPair* const pair = group.registered();
  if (!pair) return 0;
  const std::size_t size_bytes = std::min(pair->each_bytes(), kHashedBytes);
  const HostCopy input(group.device(), pair->input(), size_bytes);
  const HostCopy output(group.device(), pair->output(), size_bytes);
  return hash_bytes(input.data(), size_bytes) ^ hash_bytes(output.data(), size_bytes);
}

std::uint64_t lost_slots_of(const std::vector<Group*>& groups) {
  std::uint64_t lost = 0;
  for (Group* const group : groups)
    if (group->is_member()) lost += group->comm().stats().lost_slots;
  return lost;
}

/// The same order on every rank.
std::vector<Group*> shuffled(std::vector<Group*> groups, Random random) {
  for (std::size_t i = groups.size(); i > 1; --i)
    std::swap(groups[i - 1], groups[random.below(std::uint64_t{i})]);
  return groups;
}

}  // namespace

template <class Action>
void Transitions::timed(Durations& durations, Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  durations.add(std::chrono::steady_clock::now() - start);
}

int Transitions::run(Groups& groups, const CyclePlan& plan,
                     const std::function<void(std::vector<Group*>&)>& meanwhile) {
  if (plan.transition == Transition::none) return 0;
  std::vector<Group*> chosen = affected(groups, plan);
  remember(chosen);
  suspend(chosen, plan);
  check_suspended(chosen, plan.transition != Transition::single);
  if (fake_) occupy(chosen);
  meanwhile(chosen);
  if (real_) checkpoint(chosen);
  resume(chosen, plan);
  if (real_) check_lost(chosen);
  return check_resumed(chosen);
}

std::vector<Group*> Transitions::affected(Groups& groups, const CyclePlan& plan) const {
  std::vector<Group*> chosen;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (plan.transition != Transition::single || static_cast<int>(i) == plan.group)
      chosen.push_back(groups[i].get());
  return chosen;
}

void Transitions::remember(const std::vector<Group*>& groups) {
  before_.clear();
  for (Group* const group : groups)
    if (group->is_member())
      before_[group] = {group->comm().mappings(), hash_contents(*group),
                        group->comm().stats().registered_buffers};
}

void Transitions::suspend(std::vector<Group*> groups, const CyclePlan& plan) {
  if (plan.transition == Transition::all) {
    journal_.doing("suspend_all");
    timed(tally_.suspend, [] { librun::suspend_all(); });
    if (plan.repeat_transitions && librun::suspend_all())
      journal_.wrong("a second suspend_all did something");
    return;
  }
  for (Group* const group : shuffled(std::move(groups), Random(plan.order_seed, 0, 0))) {
    if (!group->is_member()) continue;
    journal_.doing("suspend of " + group->name());
    timed(tally_.suspend, [&] { group->comm().suspend(); });
    if (plan.repeat_transitions && group->comm().suspend())
      journal_.wrong("a second suspend did something");
  }
}

void Transitions::check_suspended(const std::vector<Group*>& groups, bool everything) {
  for (Group* const group : groups) {
    if (!group->is_member()) continue;
    journal_.doing("look at suspended " + group->name());
    const librun_stats_t stats = group->comm().stats();
    if (stats.state != LIBRUN_SUSPENDED)
      journal_.wrong(fmt::format("the state is {}", librun_state_name(stats.state)));
    if (stats.open_mappings != 0)
      journal_.wrong(fmt::format("{} mappings are still open", stats.open_mappings));
  }
  if (!everything) return;
  // What the device hinders, under MPS, is nothing to a fake checkpoint.
  for (const std::string& blocker : librun::checkpoint_blockers())
    if (blocker.find("communicator") != std::string::npos ||
        blocker.find("mapping") != std::string::npos)
      journal_.wrong("a checkpoint is blocked: " + blocker);
}

void Transitions::occupy(const std::vector<Group*>& groups) {
  journal_.doing("fake checkpoint");
  std::vector<librun_mapping_t> closed;
  for (Group* const group : groups)
    if (group->is_member())
      closed.insert(closed.end(), before_[group].mappings.begin(), before_[group].mappings.end());
  checkpoint_.occupy(closed);
}

void Transitions::checkpoint(const std::vector<Group*>& groups) {
  lost_before_ = lost_slots_of(groups);
  fragile_ = librun::checkpoint_notes().size();
  real_();
}

/// What was exported as a handle cannot be mapped again, and nothing else may be lost.
void Transitions::check_lost(const std::vector<Group*>& groups) {
  journal_.doing("look for staged slots after a checkpoint");
  const std::uint64_t lost = lost_slots_of(groups) - lost_before_;
  tally_.lost_slots += lost;
  if (lost != fragile_)
    journal_.wrong(fmt::format("{} slots became staged, {} were said to", lost, fragile_));
}

void Transitions::resume(std::vector<Group*> groups, const CyclePlan& plan) {
  if (plan.transition == Transition::all) {
    journal_.doing("resume_all");
    timed(tally_.resume, [] { librun::resume_all(); });
    if (plan.repeat_transitions && librun::resume_all())
      journal_.wrong("a second resume_all did something");
    return;
  }
  for (Group* const group : shuffled(std::move(groups), Random(plan.order_seed, 1, 0))) {
    if (!group->is_member()) continue;
    journal_.doing("resume of " + group->name());
    resume_one(*group, plan);
    if (plan.repeat_transitions && group->comm().resume())
      journal_.wrong("a second resume did something");
  }
}

void Transitions::resume_one(Group& group, const CyclePlan& plan) {
  const Members members = group.plan().members;
  if (plan.resume == Resume::after_wrong_one && group.world() > 1)
    expect(LIBRUN_REJECTED, librun_resume_on(group.comm().get(), mpi_.wrong_order(members), -1),
           "resume_on in another order", journal_);
  timed(tally_.resume, [&] {
    if (plan.resume == Resume::on_another)
      group.comm().resume_on(mpi_.another(members));
    else
      group.comm().resume();
  });
}

int Transitions::check_resumed(const std::vector<Group*>& groups) {
  int moved = 0;
  for (Group* const group : groups) {
    if (!group->is_member()) continue;
    journal_.doing("look at resumed " + group->name());
    const Before& before = before_[group];
    const librun_stats_t stats = group->comm().stats();
    const std::vector<librun_mapping_t> mappings = group->comm().mappings();
    if (stats.state != LIBRUN_ACTIVE)
      journal_.wrong(fmt::format("the state is {}", librun_state_name(stats.state)));
    if (stats.registered_buffers == before.registered) {
      if (mappings.size() != before.mappings.size() && !real_)
        journal_.wrong(
            fmt::format("{} mappings came back of {}", mappings.size(), before.mappings.size()));
      if (hash_contents(*group) != before.contents)
        journal_.wrong("the contents of registered buffers have changed");
    }
    moved += FakeCheckpoint::count_moved(before.mappings, mappings);
  }
  return moved;
}

}  // namespace car::stress
