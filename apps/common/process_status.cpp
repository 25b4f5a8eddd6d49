// SPDX-License-Identifier: Apache-2.0
#include "common/process_status.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace car {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLinkTarget = "/memfd:librun.status (deleted)";
/// A writer needs microseconds; a text that stays bad was left by one that died.
constexpr int kReadings = 50;
constexpr std::chrono::milliseconds kBetweenReadings{2};

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// The words of /proc/PID/stat from the state on; empty when there is no such process.
std::vector<std::string> stat_words(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream words(line.substr(end_of_name + 1));
  return {std::istream_iterator<std::string>(words), {}};
}

std::uint64_t start_time_of(pid_t pid) {
  const auto words = stat_words(pid);
  return words.size() < 20 ? 0 : std::strtoull(words[19].c_str(), nullptr, 10);
}

/// Whether the process calls itself `inner`, perhaps in a PID namespace of its own.
bool is_called(pid_t pid, pid_t inner) {
  if (pid == inner) return true;
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    std::istringstream numbers(line.substr(6));
    for (pid_t number = 0; numbers >> number;)
      if (number == inner) return true;
  }
  return false;
}

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> status_files_of(pid_t pid) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone) == kLinkTarget) files.push_back(entry->path());
  }
  return files;
}

ProcessStatus status_of(const nlohmann::json& json) {
  ProcessStatus status;
  json.at("host").get_to(status.host);
  json.at("job").get_to(status.job);
  json.at("blockers").get_to(status.blockers);
  json.at("notes").get_to(status.notes);
  for (const auto& entry : json.at("communicators")) {
    ProcessStatus::Communicator comm;
    entry.at("identity").get_to(comm.identity);
    entry.at("rank").get_to(comm.rank);
    entry.at("world").get_to(comm.world);
    entry.at("device").get_to(comm.device);
    entry.at("state").get_to(comm.state);
    entry.at("transition").get_to(comm.transition);
    entry.at("generation").get_to(comm.generation);
    entry.at("open_mappings").get_to(comm.open_mappings);
    entry.at("staged_slots").get_to(comm.staged_slots);
    entry.at("lost_slots").get_to(comm.lost_slots);
    status.communicators.push_back(std::move(comm));
  }
  return status;
}

}  // namespace

std::optional<ProcessStatus> parse_status(const std::string& text, pid_t& pid,
                                          std::uint64_t& start_time) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    const auto checksum = json.at("checksum").get<std::string>();
    const std::string member = "\"checksum\":\"" + checksum + "\",";
    const std::size_t at = text.find(member);
    if (at == std::string::npos || json.at("length").get<std::size_t>() != text.size() ||
        checksum !=
            fmt::format("{:016x}", fnv1a(std::string_view(text).substr(at + member.size()))))
      return std::nullopt;
    json.at("pid").get_to(pid);
    json.at("start_time").get_to(start_time);
    return status_of(json);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::optional<ProcessStatus> read_status(pid_t pid) {
  for (const fs::path& file : status_files_of(pid)) {
    for (int reading = 0; reading < kReadings; ++reading) {
      if (reading > 0) std::this_thread::sleep_for(kBetweenReadings);
      pid_t said_pid = 0;
      std::uint64_t said_start = 0;
      auto status = parse_status(contents_of(file), said_pid, said_start);
      if (!status) continue;
      // What a child of fork has inherited tells of its parent.
      if (said_start == start_time_of(pid) && is_called(pid, said_pid)) return status;
      break;
    }
  }
  return std::nullopt;
}

Existence look_for(pid_t pid) {
  const auto words = stat_words(pid);
  if (words.empty() || words[0] == "Z" || words[0] == "X") return Existence::gone;
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) return Existence::gone;
  const bool may = ::geteuid() == 0 || owner.st_uid == ::geteuid();
  return may ? Existence::here : Existence::of_another_user;
}

std::string command_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

std::vector<pid_t> processes_with_status() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    if (look_for(pid) == Existence::here && read_status(pid)) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace car
