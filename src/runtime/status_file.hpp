// SPDX-License-Identifier: Apache-2.0
// A text that tools of the same user find by PID: a memory file named librun.status among the
// descriptors of this process. It has no name on disk and ends with the process.
//
//   /proc/PID/fd/N -> "/memfd:librun.status (deleted)"
//   {"schema":"librun.status/1","length":       812,"checksum":"0123456789abcdef","sequence":7,...}
//
// It is rewritten in place while others read: a reader takes a text only when it has as many bytes
// as `length` says and the FNV-1a hash of all that follows the comma after `checksum` is right, and
// reads again otherwise. A child of fork inherits the descriptor: pid and start_time say whose it
// is.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/unique_handle.hpp"

namespace librun {

/// Not thread-safe.
class StatusFile {
 public:
  /// Opens the file on the first call. What fails is logged once, and hinders nobody.
  /// @param members of the JSON object, after those that tell of the process
  void write(const std::string& members) noexcept;
  /// In a child of fork: the file is the parent's.
  void close_after_fork() noexcept { file_.reset(); }

 private:
  void open();

  UniqueFd file_;
  std::string process_;  ///< members that never change
  std::uint64_t sequence_ = 0;
  bool has_failed_ = false;
};

/// LIBRUN_JOB, else what the launcher calls this job, else "".
std::string job_name();

/// The whole text of the file.
std::string status_text(const std::string& members);

}  // namespace librun
