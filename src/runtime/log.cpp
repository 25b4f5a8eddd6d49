// SPDX-License-Identifier: Apache-2.0
#include "runtime/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "ipc/topology.hpp"
#include "librun/error.hpp"
#include "runtime/settings.hpp"

namespace librun::log {
namespace {

std::shared_ptr<spdlog::logger>& slot() {
  static std::shared_ptr<spdlog::logger> logger;
  return logger;
}
std::atomic<spdlog::logger*> current{nullptr};
std::mutex open_mutex;

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::error:
      return spdlog::level::err;
    case Level::warn:
      return spdlog::level::warn;
    case Level::info:
      return spdlog::level::info;
    case Level::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::off;
}

std::string expand(std::string path, int rank) {
  const std::pair<const char*, std::string> parts[] = {
      {"%r", std::to_string(rank)}, {"%h", ipc::host_name()}, {"%p", std::to_string(::getpid())}};
  for (const auto& [mark, text] : parts)
    for (auto at = path.find(mark); at != std::string::npos; at = path.find(mark, at + text.size()))
      path.replace(at, 2, text);
  return path;
}

}  // namespace

void open(int rank, int world) {
  const std::lock_guard lock(open_mutex);
  if (slot()) return;
  const std::string level = setting_value("LIBRUN_LOG");
  const std::string path = expand(setting_value("LIBRUN_LOG_FILE"), rank);
  const bool all_ranks = setting_value("LIBRUN_LOG_RANKS") == "all";
  spdlog::sink_ptr sink;
  try {
    if (path.empty())
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(LIBRUN_SYSTEM, rank, "cannot open the log: " + std::string(error.what()) + ".",
                "check LIBRUN_LOG_FILE.");
  }
  auto logger = std::make_shared<spdlog::logger>("librun", sink);
  auto threshold = spdlog::level::from_str(level);
  if (rank != 0 && !all_ranks) threshold = std::max(threshold, spdlog::level::warn);
  logger->set_level(threshold);
  logger->flush_on(spdlog::level::warn);
  logger->set_pattern("[%H:%M:%S.%e] [r" + std::to_string(rank) + "/" + std::to_string(world) +
                      " " + ipc::host_name() + "] [%l] [librun] %v");
  slot() = std::move(logger);
  current.store(slot().get(), std::memory_order_release);
}

void write(Level level, const std::string& text) noexcept {
  if (spdlog::logger* logger = current.load(std::memory_order_acquire))
    logger->log(to_spdlog(level), text);
}

bool enabled(Level level) noexcept {
  spdlog::logger* logger = current.load(std::memory_order_acquire);
  return logger && logger->should_log(to_spdlog(level));
}

}  // namespace librun::log
