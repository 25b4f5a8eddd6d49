// SPDX-License-Identifier: Apache-2.0
#include "common/json_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace car {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

std::string temporary_of(const std::string& path) {
  return fmt::format("{}.{}.tmp", path, ::getpid());
}

}  // namespace

void write_json(const std::string& path, const std::string& text) {
  if (path == "-") {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) fail("standard output");
    return;
  }
  const std::string temporary = temporary_of(path);
  FILE* const file = std::fopen(temporary.c_str(), "w");
  if (!file) fail(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  fail(path);
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  const std::string temporary = temporary_of(path);
  FILE* const file = std::fopen(temporary.c_str(), "w");
  if (!file) fail(path);
  std::fclose(file);
  std::remove(temporary.c_str());
}

}  // namespace car
