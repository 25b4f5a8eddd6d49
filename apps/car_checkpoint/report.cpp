// SPDX-License-Identifier: Apache-2.0
#include "car_checkpoint/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace car::checkpoint {
namespace {

std::string cuda_state_of(const std::vector<Member>& members, pid_t pid) {
  for (const Member& member : members)
    if (member.pid == pid) return car::name_of(member.state);
  return "-";
}

std::string librun_state_of(const Target& target) {
  if (!target.status) return "not seen";
  const auto* comm = target.communicator();
  if (!comm) return "none";
  return comm->transition.empty() ? comm->state : comm->transition + "...";
}

nlohmann::ordered_json json_of(const Target& target, const std::vector<Member>& members) {
  nlohmann::ordered_json json{{"pid", target.pid},
                              {"command", target.command},
                              {"uses_librun", target.status.has_value()},
                              {"job", target.status ? target.status->job : ""},
                              {"cuda_state", cuda_state_of(members, target.pid)},
                              {"hindrances", target.hindrances(true)}};
  json["notes"] = target.status ? target.status->notes : std::vector<std::string>{};
  json["communicators"] = nlohmann::ordered_json::array();
  if (target.status)
    for (const auto& comm : target.status->communicators)
      json["communicators"].push_back({{"identity", comm.identity},
                                       {"rank", comm.rank},
                                       {"world", comm.world},
                                       {"device", comm.device},
                                       {"state", comm.state},
                                       {"transition", comm.transition},
                                       {"generation", comm.generation},
                                       {"open_mappings", comm.open_mappings},
                                       {"staged_slots", comm.staged_slots},
                                       {"lost_slots", comm.lost_slots}});
  for (const Member& member : members)
    if (member.pid == target.pid) {
      json["error"] = member.error;
      json["lost"] = member.is_lost;
    }
  return json;
}

}  // namespace

std::string table_of(const std::vector<Target>& targets, const std::vector<Member>& members) {
  constexpr const char* kRow = "{:>8}  {:<16} {:>6}  {:<12} {:<10} {:<13} {}\n";
  std::string text = fmt::format(kRow, "PID", "COMMAND", "RANK", "JOB", "LIBRUN", "CUDA", "READY");
  std::string details;
  for (const Target& target : targets) {
    const auto* comm = target.communicator();
    const auto hindrances = target.hindrances(true);
    const std::string job = target.status && !target.status->job.empty() ? target.status->job : "-";
    text += fmt::format(kRow, target.pid, target.command.empty() ? "-" : target.command,
                        comm ? fmt::format("{}/{}", comm->rank, comm->world) : "-", job,
                        librun_state_of(target), cuda_state_of(members, target.pid),
                        !hindrances.empty() ? "no"
                        : target.status     ? "yes"
                                            : "unknown");
    for (const std::string& line : hindrances)
      details += fmt::format("{}: {}\n", target.name(), line);
    if (target.existence == Existence::here && !target.status)
      details += fmt::format("{}: no librun status: its blockers cannot be seen\n", target.name());
    if (target.status)
      for (const std::string& line : target.status->notes)
        details += fmt::format("{}: note: {}\n", target.name(), line);
  }
  return text + details;
}

std::string line_of(const StepResult& result) {
  return fmt::format("{:<11} {:<7} {:>7} ms\n", name_of(result.step), result.ok ? "ok" : "failed",
                     result.elapsed.count());
}

std::string json_of(const Record& record, const Options& options, int exit_code) {
  nlohmann::ordered_json root{{"schema", "librun.checkpoint/1"},
                              {"action", options.list ? "list" : name_of(options.action)},
                              {"exit_code", exit_code}};
  if (!record.error.empty()) root["error"] = record.error;
  root["processes"] = nlohmann::ordered_json::array();
  for (const Target& target : record.targets)
    root["processes"].push_back(json_of(target, record.members));
  root["steps"] = nlohmann::ordered_json::array();
  for (const StepResult& step : record.steps)
    root["steps"].push_back(
        {{"step", name_of(step.step)}, {"ok", step.ok}, {"ms", step.elapsed.count()}});
  root["gpu_memory"] = nlohmann::ordered_json::array();
  for (const Moment& moment : record.moments)
    for (const GpuUsage& gpu : moment.usage)
      root["gpu_memory"].push_back(
          {{"when", moment.name}, {"gpu", gpu.uuid}, {"used_bytes", gpu.used_bytes}});
  return root.dump(2) + "\n";
}

}  // namespace car::checkpoint
