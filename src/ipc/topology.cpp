// SPDX-License-Identifier: Apache-2.0
#include "ipc/topology.hpp"

#include <unistd.h>

#include <fstream>

#include "librun/error.hpp"

namespace librun::ipc {

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  if (id.empty())
    throw Error(LIBRUN_SYSTEM, -1, "cannot read /proc/sys/kernel/random/boot_id.",
                "mount /proc, or raise the limit of open files (ulimit -n).");
  return id;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof(cores), &cores);
  return cores;
}

bool ranks_share_cores(const std::vector<cpu_set_t>& allowed) {
  // A core needs no more than its fair share of each rank that may run there.
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    double load = 0;
    for (const cpu_set_t& cores : allowed)
      if (CPU_ISSET(core, &cores)) load += 1.0 / CPU_COUNT(&cores);
    if (load > 1.0 + 1e-9) return true;
  }
  return false;
}

}  // namespace librun::ipc
