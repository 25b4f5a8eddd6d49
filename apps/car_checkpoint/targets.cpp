// SPDX-License-Identifier: Apache-2.0
#include "car_checkpoint/targets.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace car::checkpoint {

const ProcessStatus::Communicator* Target::communicator() const {
  if (!status || status->communicators.empty()) return nullptr;
  const auto smaller = [](const auto& a, const auto& b) { return a.world < b.world; };
  return &*std::ranges::max_element(status->communicators, smaller);
}

std::string Target::name() const {
  const auto* comm = communicator();
  return comm ? fmt::format("rank {} (process {})", comm->rank, pid)
              : fmt::format("process {}", pid);
}

std::vector<std::string> Target::hindrances(bool blockers) const {
  if (existence == Existence::gone) return {"there is no such process"};
  if (existence == Existence::of_another_user) return {"it belongs to another user"};
  if (pid == ::getpid()) return {"it is car_checkpoint itself"};
  return blockers && status ? status->blockers : std::vector<std::string>{};
}

Target look_at(pid_t pid) {
  Target target{pid, look_for(pid), {}, std::nullopt};
  if (target.existence != Existence::here) return target;
  target.command = command_of(pid);
  target.status = read_status(pid);
  return target;
}

std::vector<Target> find_targets(const Options& options) {
  std::vector<Target> targets;
  if (options.pids.empty()) {
    for (const pid_t pid : processes_with_status()) {
      Target target = look_at(pid);
      const bool wanted =
          target.status && (options.job.empty() || target.status->job == options.job);
      if (wanted) targets.push_back(std::move(target));
    }
  } else {
    for (const pid_t pid : options.pids) targets.push_back(look_at(pid));
  }
  const auto rank = [](const Target& target) {
    const auto* comm = target.communicator();
    return comm ? comm->rank : -1;
  };
  std::ranges::stable_sort(targets, {}, rank);
  return targets;
}

}  // namespace car::checkpoint
