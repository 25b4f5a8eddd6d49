// SPDX-License-Identifier: Apache-2.0
#include "runtime/status.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "librun/librun.h"
#include "runtime/env.hpp"
#include "runtime/log.hpp"
#include "runtime/process.hpp"

namespace librun {
namespace {

std::string name_of(const CommunicatorStatus& status) {
  return fmt::format("communicator of rank {} of {}", status.rank, status.world);
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + json_quote(text);
  return "[" + list + "]";
}

std::string json_of(const CommunicatorStatus& status) {
  std::string peers;
  std::uint64_t mappings = 0;
  for (const auto& peer : status.peers) {
    peers += fmt::format(R"({}{{"rank":{},"mappings":{},"bytes":{}}})", peers.empty() ? "" : ",",
                         peer.rank, peer.mappings, peer.size_bytes);
    mappings += peer.mappings;
  }
  return fmt::format(
      R"({{"identity":"{:016x}","rank":{},"world":{},"device":{},"state":"{}","transition":{},)"
      R"("generation":{},"open_mappings":{},"peers":[{}],"registered_buffers":{},)"
      R"("staged_slots":{},"lost_slots":{}}})",
      status.identity, status.rank, status.world, json_quote(status.device),
      librun_state_name(status.state), json_quote(status.transition), status.generation, mappings,
      peers, status.registered_buffers, status.staged_slots, status.lost_slots);
}

}  // namespace

std::vector<std::string> blockers_of(const std::vector<CommunicatorStatus>& communicators,
                                     std::uint64_t left_mappings) {
  std::vector<std::string> lines;
  for (const CommunicatorStatus& status : communicators) {
    const std::string name = name_of(status);
    if (!status.transition.empty())
      lines.push_back(name + " has a " + status.transition + " under way: wait for its end");
    else if (status.state == LIBRUN_ACTIVE)
      lines.push_back(name + " is active: suspend it");
    for (const auto& peer : status.peers)
      lines.push_back(fmt::format("{} has {} mapping{} of rank {}'s memory open: {} bytes", name,
                                  peer.mappings, peer.mappings == 1 ? "" : "s", peer.rank,
                                  peer.size_bytes));
    if (status.state == LIBRUN_CLOSED && status.transition.empty()) continue;
    for (const std::string& obstacle : status.obstacles)
      if (std::find(lines.begin(), lines.end(), obstacle) == lines.end()) lines.push_back(obstacle);
  }
  if (left_mappings != 0)
    lines.push_back(
        fmt::format("{} mapping{} of peers' memory could not be closed after a failure: end this "
                    "process",
                    left_mappings, left_mappings == 1 ? "" : "s"));
  return lines;
}

std::vector<std::string> notes_of(const std::vector<CommunicatorStatus>& communicators) {
  std::vector<std::string> lines;
  for (const CommunicatorStatus& status : communicators)
    for (const auto& slot : status.fragile_slots)
      lines.push_back(
          fmt::format("{}: slot {} ({} bytes, exported by handle) cannot be mapped by peers after "
                      "a checkpoint: it will be staged",
                      name_of(status), slot.slot, slot.size_bytes));
  return lines;
}

StatusBoard& StatusBoard::instance() {
  struct Current {
    std::uint64_t process;
    StatusBoard board;
  };
  static std::atomic<Current*> current{nullptr};
  const std::uint64_t process = process_instance();
  Current* found = current.load(std::memory_order_acquire);
  while (!found || found->process != process) {
    // The parent's board stays as fork found it: another thread may have held its lock.
    auto* const fresh = new Current{process, {}};
    if (current.compare_exchange_strong(found, fresh)) {
      if (found) found->board.file_.close_after_fork();
      found = fresh;
    } else {
      delete fresh;
    }
  }
  return found->board;
}

void StatusBoard::show(const void* owner, CommunicatorStatus status,
                       const std::atomic<librun_state_t>& state) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    auto [entry, is_new] = entries_.try_emplace(owner);
    if (is_new) entry->second.number = next_number_++;
    status.state = state.load();
    entry->second.status = std::move(status);
  } catch (const std::exception& error) {
    log::write(log::Level::warn, std::string("the status cannot be kept: ") + error.what());
  }
  rewrite();
}

void StatusBoard::show_failed(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(owner);
  if (entry == entries_.end()) return;
  entry->second.status.state = LIBRUN_FAILED_STATE;
  rewrite();
}

void StatusBoard::remove(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  if (entries_.erase(owner) != 0) rewrite();
}

void StatusBoard::leave_mappings(std::uint64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  left_mappings_ += count;
}

std::vector<CommunicatorStatus> StatusBoard::in_order() const {
  std::vector<const Entry*> entries;
  for (const auto& [owner, entry] : entries_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->number < b->number; });
  std::vector<CommunicatorStatus> statuses;
  for (const Entry* entry : entries) statuses.push_back(entry->status);
  return statuses;
}

std::vector<std::string> StatusBoard::blockers() const {
  const std::lock_guard lock(mutex_);
  return blockers_of(in_order(), left_mappings_);
}

std::vector<std::string> StatusBoard::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_of(in_order());
}

void StatusBoard::rewrite() noexcept {
  try {
    const auto communicators = in_order();
    std::string list;
    for (const auto& status : communicators) list += (list.empty() ? "" : ",") + json_of(status);
    file_.write(fmt::format(R"("communicators":[{}],"blockers":{},"notes":{})", list,
                            json_list(blockers_of(communicators, left_mappings_)),
                            json_list(notes_of(communicators))));
  } catch (const std::exception& error) {
    log::write(log::Level::warn, std::string("the status cannot be written: ") + error.what());
  }
}

}  // namespace librun
