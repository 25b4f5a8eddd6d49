// SPDX-License-Identifier: Apache-2.0
// What processes that use librun show of themselves, found by PID; and what /proc says of any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace car {

/// What a process has written into its status file.
struct ProcessStatus {
  struct Communicator {
    std::string identity;
    int rank = -1;
    int world = 0;
    std::string device;
    std::string state;
    std::string transition;  ///< "" or what is under way
    std::uint64_t generation = 0;
    std::uint64_t open_mappings = 0;
    std::uint64_t staged_slots = 0;
    std::uint64_t lost_slots = 0;
  };
  std::string host;
  std::string job;
  std::vector<Communicator> communicators;
  std::vector<std::string> blockers;
  std::vector<std::string> notes;
};

/// The text of a status file. @return nothing for half a text, or one that is being rewritten
/// @param pid,start_time whose it says it is
std::optional<ProcessStatus> parse_status(const std::string& text, pid_t& pid,
                                          std::uint64_t& start_time);

/// Nothing when the process does not use librun, is gone, or may not be looked at. Reads again
/// while the text is being rewritten.
std::optional<ProcessStatus> read_status(pid_t pid);

enum class Existence { here, gone, of_another_user };
/// A zombie is gone.
Existence look_for(pid_t pid);
/// Of "/proc/PID/comm".
std::string command_of(pid_t pid);
/// Processes of this user that have a status, in ascending order.
std::vector<pid_t> processes_with_status();

}  // namespace car
