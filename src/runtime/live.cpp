// SPDX-License-Identifier: Apache-2.0
#include "runtime/live.hpp"

#include <mutex>

namespace librun {
namespace {

struct Live {
  std::mutex mutex;
  std::vector<std::weak_ptr<Communicator>> communicators;
};

Live& live() {
  static Live* const instance = new Live;  // outlives every static object
  return *instance;
}

}  // namespace

void add_live(const std::shared_ptr<Communicator>& communicator) {
  const std::lock_guard lock(live().mutex);
  std::erase_if(live().communicators, [](const auto& entry) { return entry.expired(); });
  live().communicators.push_back(communicator);
}

std::vector<std::shared_ptr<Communicator>> live_communicators() {
  const std::lock_guard lock(live().mutex);
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (const auto& entry : live().communicators)
    if (auto communicator = entry.lock()) communicators.push_back(std::move(communicator));
  return communicators;
}

}  // namespace librun
