// SPDX-License-Identifier: Apache-2.0
// The plan in words, for messages and --list.
#include "car_stress/plan.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

const char* name_of(Transition transition) {
  constexpr const char* kNames[] = {"no transition", "one communicator", "each in turn",
                                    "suspend_all"};
  return kNames[static_cast<int>(transition)];
}

const char* name_of(Resume resume) {
  constexpr const char* kNames[] = {"resume", "resume_on another communicator",
                                    "resume_on the wrong ranks, then resume"};
  return kNames[static_cast<int>(resume)];
}

}  // namespace

std::string describe(const GroupPlan& group) {
  return std::string(name_of(group.members)) + ", " + librun_algo_name(group.algo);
}

std::string describe(const CallPlan& call) {
  std::string text = std::string(librun_dtype_name(call.dtype)) + " " + librun_op_name(call.op) +
                     " count " + std::to_string(call.count);
  if (call.mixed_in_place)
    text += " in place on some ranks";
  else if (call.in_place)
    text += " in place";
  if (call.repeats > 1) text += " x" + std::to_string(call.repeats);
  return text;
}

std::vector<std::string> describe(const CyclePlan& cycle) {
  std::vector<std::string> lines;
  const auto add_calls = [&](const char* when, const std::vector<CallPlan>& calls) {
    for (const CallPlan& call : calls)
      lines.push_back(std::string(when) + ": comm " + std::to_string(call.group) + ": " +
                      describe(call));
  };
  add_calls("before", cycle.before);
  for (const ProbePlan& probe : cycle.probes)
    lines.push_back(std::string("refused: comm ") + std::to_string(probe.group) + ": " +
                    name_of(probe.probe));
  std::string transition = std::string("transition: ") + name_of(cycle.transition);
  if (cycle.transition == Transition::single)
    transition += " (" + std::to_string(cycle.group) + "), " + name_of(cycle.resume);
  if (cycle.repeat_transitions) transition += ", repeated";
  lines.push_back(transition);
  add_calls("meanwhile", cycle.during);
  if (cycle.churn_group >= 0)
    lines.push_back("registered buffers of comm " + std::to_string(cycle.churn_group) +
                    " are replaced" + (cycle.churn_while_suspended ? " while suspended" : ""));
  add_calls("after", cycle.after);
  return lines;
}

const char* name_of(Members members) {
  constexpr const char* kNames[] = {"world", "reversed", "halves", "parity", "without_one"};
  return kNames[static_cast<int>(members)];
}

const char* name_of(Probe probe) {
  constexpr const char* kNames[kProbes] = {
      "null pointer",         "misaligned pointer",       "partial overlap",
      "impossible count",     "different counts",         "different types",
      "different operations", "suspend during a capture", "free of a registered buffer"};
  return kNames[static_cast<int>(probe)];
}

}  // namespace car::stress
