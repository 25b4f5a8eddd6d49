// SPDX-License-Identifier: Apache-2.0
#include "common/json_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace car {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

/// Devices, pipes and links are written through: a rename would replace them by a plain file.
bool is_replaceable(const std::string& path) {
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(path, ignored).type();
  return type == std::filesystem::file_type::not_found ||
         type == std::filesystem::file_type::regular;
}

std::string temporary_of(const std::string& path) {
  return fmt::format("{}.{}.tmp", path, ::getpid());
}

/// False with errno when not all of it is there.
bool write_whole(const std::string& path, const std::string& text) {
  FILE* const file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

}  // namespace

void write_json(const std::string& path, const std::string& text) {
  if (path == "-") {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) fail("standard output");
    return;
  }
  if (!is_replaceable(path)) {
    if (!write_whole(path, text)) fail(path);
    return;
  }
  const std::string temporary = temporary_of(path);
  if (write_whole(temporary, text) && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  fail(path);
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (!is_replaceable(path)) {
    if (std::filesystem::is_directory(path)) errno = EISDIR;
    if (std::filesystem::is_directory(path) || ::access(path.c_str(), W_OK) != 0) fail(path);
    return;
  }
  const std::string temporary = temporary_of(path);
  FILE* const file = std::fopen(temporary.c_str(), "w");
  if (!file) fail(path);
  std::fclose(file);
  std::remove(temporary.c_str());
}

}  // namespace car
