// SPDX-License-Identifier: Apache-2.0
#include "runtime/status_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ipc/topology.hpp"
#include "librun/error.hpp"
#include "runtime/env.hpp"
#include "runtime/log.hpp"
#include "runtime/settings.hpp"

namespace librun {
namespace {

/// Clock ticks from boot to the start of this process: with the pid it names a process for good.
std::uint64_t start_time() {
  std::ifstream file("/proc/self/stat");
  std::string stat;
  std::getline(file, stat);
  // The name is in brackets and may hold anything; the 20th word after it is the time.
  const std::size_t end_of_name = stat.rfind(')');
  std::istringstream words(end_of_name == std::string::npos ? "" : stat.substr(end_of_name + 1));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  return words ? std::stoull(word) : 0;
}

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

[[noreturn]] void throw_errno(const char* call) {
  throw Error(LIBRUN_SYSTEM, -1, fmt::format("{}: {}", call, std::strerror(errno)));
}

}  // namespace

std::string job_name() {
  const auto variable = [](const char* name) { return environment_variable(name).value_or(""); };
  if (const std::string name = setting_value("LIBRUN_JOB"); !name.empty()) return name;
  if (const std::string job = variable("SLURM_JOB_ID"); !job.empty()) {
    const std::string step = variable("SLURM_STEP_ID");
    return step.empty() ? job : job + "." + step;
  }
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "FLUX_JOB_ID",
                           "PBS_JOBID", "LSB_JOBID"})
    if (const std::string job = variable(name); !job.empty()) return job;
  return "";
}

std::string status_text(const std::string& members) {
  const std::string checked = members + "}\n";
  const auto head = [checksum = fnv1a(checked)](std::size_t length) {
    return fmt::format(R"({{"schema":"librun.status/1","length":{:10},"checksum":"{:016x}",)",
                       length, checksum);
  };
  return head(head(0).size() + checked.size()) + checked;
}

void StatusFile::open() {
  file_ = UniqueFd(::memfd_create("librun.status", MFD_CLOEXEC));
  if (!file_) throw_errno("memfd_create");
  process_ = fmt::format(R"("pid":{},"start_time":{},"host":{},"job":{},)", ::getpid(),
                         start_time(), json_quote(ipc::host_name()), json_quote(job_name()));
}

void StatusFile::write(const std::string& members) noexcept {
  try {
    if (!file_) open();
    const std::string text =
        status_text(fmt::format(R"("sequence":{},)", ++sequence_) + process_ + members);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t written =
          ::pwrite(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw_errno("pwrite");
      done += static_cast<std::size_t>(written);
    }
    if (::ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0) throw_errno("ftruncate");
  } catch (const std::exception& error) {
    if (!has_failed_)
      log::write(log::Level::warn,
                 std::string("tools cannot see the state of this process: ") + error.what());
    has_failed_ = true;
  }
}

}  // namespace librun
