// SPDX-License-Identifier: Apache-2.0
#include "car_stress/plan.hpp"

#include <algorithm>

#include "car_stress/random.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

enum Stream : std::uint64_t { kFirst = 1, kEpoch, kCycle };

constexpr std::size_t kGraphMaxBytes = std::size_t{64} << 10;
constexpr std::size_t kBurstMaxBytes = std::size_t{4} << 10;

/// Mostly small, since there the protocol is stressed most, with a tail up to the limit.
std::size_t draw_bytes(Random& random, std::size_t max_bytes) {
  const int kind = random.below(100);
  if (kind < 4) return 0;
  const std::size_t wanted = kind < 68   ? std::size_t{4} << 10
                             : kind < 94 ? std::size_t{64} << 10
                                         : max_bytes;
  const std::size_t limit = std::min(wanted, max_bytes);
  int octaves = 0;
  while (limit >> (octaves + 1)) ++octaves;
  const std::size_t base = std::size_t{1} << random.below(octaves + 1);
  return std::min(limit, base + random.below(std::uint64_t{base}));
}

CallPlan draw_call(Random& random, int group, std::size_t max_bytes) {
  CallPlan call;
  call.group = group;
  call.dtype = static_cast<librun_dtype_t>(random.below(LIBRUN_DTYPE_COUNT));
  call.op = random.one_in(2) ? LIBRUN_SUM : static_cast<librun_op_t>(random.below(LIBRUN_OP_COUNT));
  call.count = draw_bytes(random, max_bytes) / librun_dtype_bytes(call.dtype);
  call.seed = random.next();
  call.in_place = random.one_in(3);
  call.mixed_in_place = random.one_in(6);
  call.spoil_input = random.one_in(2);
  call.jitter = random.one_in(8);
  const bool small = call.count * librun_dtype_bytes(call.dtype) <= kBurstMaxBytes;
  if (small && !call.in_place && !call.mixed_in_place && random.one_in(6))
    call.repeats = 2 + random.below(30);
  return call;
}

GraphPlan draw_graph(Random& random, int group, const Limits& limits) {
  GraphPlan graph;
  graph.group = group;
  const int calls = 1 + random.below(3);
  for (int i = 0; i < calls; ++i) {
    CallPlan call = draw_call(random, group, std::min(limits.max_bytes, kGraphMaxBytes));
    call.repeats = 1;
    call.spoil_input = call.jitter = false;
    graph.calls.push_back(call);
  }
  return graph;
}

GroupPlan draw_group(Random& random, const Limits& limits) {
  GroupPlan group;
  constexpr Members kKinds[] = {Members::world,  Members::world,  Members::reversed,
                                Members::halves, Members::parity, Members::without_one};
  group.members = kKinds[random.below(6)];
  if (limits.world < 3 && group.members != Members::world) group.members = Members::reversed;
  const auto algo = static_cast<librun_algo_t>(random.below(LIBRUN_ALGO_COUNT));
  group.algo = limits.algo == LIBRUN_ALGO_AUTO ? algo : limits.algo;
  return group;
}

Transition draw_transition(Random& random, const Limits& limits) {
  const int kind = random.below(100);
  if (limits.suspend_everything) return kind < 60 ? Transition::all : Transition::each;
  if (kind < 45) return Transition::all;
  if (kind < 80) return Transition::single;
  if (kind < 92 || limits.must_move) return Transition::each;
  return Transition::none;
}

bool has_mappings(const Limits& limits, const EpochPlan& epoch, int group) {
  const Members members =
      group == 0 ? Members::world : epoch.groups[static_cast<std::size_t>(group - 1)].members;
  return largest_world(members, limits.world) > 1;
}

}  // namespace

int largest_world(Members members, int world) {
  switch (members) {
    case Members::halves:
    case Members::parity:
      return (world + 1) / 2;
    case Members::without_one:
      return world - 1;
    case Members::world:
    case Members::reversed:
      break;
  }
  return world;
}

GroupPlan plan_first_group(const Limits& limits) { return {Members::world, limits.algo}; }

GraphPlan plan_first_graph(const Limits& limits) {
  Random random(limits.seed, kFirst, 0);
  return draw_graph(random, 0, limits);
}

EpochPlan plan_epoch(const Limits& limits, std::uint64_t epoch) {
  Random random(limits.seed, kEpoch, epoch);
  EpochPlan plan;
  for (int i = 1; i < limits.groups; ++i) plan.groups.push_back(draw_group(random, limits));
  for (int i = 1; i < limits.graphs; ++i)
    plan.graphs.push_back(draw_graph(random, random.below(limits.groups), limits));
  return plan;
}

CyclePlan plan_cycle(const Limits& limits, const EpochPlan& epoch, std::uint64_t cycle) {
  Random random(limits.seed, kCycle, cycle);
  CyclePlan plan;
  plan.transition = draw_transition(random, limits);
  plan.group = random.below(limits.groups);
  if (limits.must_move && !has_mappings(limits, epoch, plan.group)) plan.group = 0;
  plan.resume = static_cast<Resume>(std::max(0, random.below(6) - 3));
  plan.repeat_transitions = random.one_in(4);
  plan.calls_while_suspended = random.one_in(3);
  if (random.one_in(3)) plan.churn_group = random.below(limits.groups);
  plan.churn_while_suspended = random.one_in(2);
  plan.order_seed = random.next();
  plan.kill_step = random.below(kKillSteps);

  for (int i = 0; i < limits.calls_per_cycle; ++i) {
    const CallPlan call = draw_call(random, random.below(limits.groups), limits.max_bytes);
    const bool runs_meanwhile =
        plan.transition == Transition::single && call.group != plan.group && random.one_in(2);
    if (runs_meanwhile)
      plan.during.push_back(call);
    else
      (2 * i < limits.calls_per_cycle ? plan.before : plan.after).push_back(call);
  }
  if (random.one_in(2))
    plan.probes.push_back(
        {static_cast<Probe>(random.below(kProbes)), random.below(limits.groups), random.next()});
  return plan;
}

}  // namespace car::stress
