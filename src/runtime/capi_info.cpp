// SPDX-License-Identifier: Apache-2.0
// The C API: errors and what the library can tell of itself.
#include <algorithm>
#include <cstring>

#include "kernels/device.hpp"
#include "librun/librun.h"
#include "runtime/guard.hpp"
#include "runtime/settings.hpp"
#include "runtime/status.hpp"

using librun::capi::deref;
using librun::capi::guard;

namespace librun::capi {
namespace {

struct LastError {
  librun_status_t status = LIBRUN_OK;
  int rank = -1;
  char what[1536] = {};
  char text[1024] = {};
  char hint[512] = {};
};
thread_local LastError last_error;

template <std::size_t N>
void keep(char (&field)[N], const char* text) noexcept {
  std::strncpy(field, text, N - 1);
  field[N - 1] = '\0';
}

/// Copies text into a caller's buffer, always ended.
void give_text(const std::string& from, char* to, std::size_t to_bytes) {
  if (to_bytes == 0) return;
  if (!to) reject_argument("text is null.");
  const std::size_t n = std::min(from.size(), to_bytes - 1);
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

/// @return how many lines there are
int give_lines(const std::vector<std::string>& lines, char* to, std::size_t to_bytes) {
  std::string joined;
  for (const std::string& line : lines) joined += (joined.empty() ? "" : "\n") + line;
  give_text(joined, to, to_bytes);
  return static_cast<int>(lines.size());
}

}  // namespace

librun_status_t remember(librun_status_t status, int rank, const char* what, const char* text,
                         const char* hint) noexcept {
  last_error.status = status;
  last_error.rank = rank;
  keep(last_error.what, what);
  keep(last_error.text, text);
  keep(last_error.hint, hint);
  return status;
}

}  // namespace librun::capi

extern "C" {

const char* librun_last_error(void) { return librun::capi::last_error.what; }

librun_status_t librun_last_error_info(librun_error_info_t* out) {
  if (!out || out->struct_size < sizeof(librun_error_info_t)) return LIBRUN_INVALID_ARGUMENT;
  const auto& last = librun::capi::last_error;
  out->status = last.status;
  out->rank = last.rank;
  std::memcpy(out->text, last.text, sizeof(out->text));
  std::memcpy(out->hint, last.hint, sizeof(out->hint));
  return LIBRUN_OK;
}

librun_status_t librun_checkpoint_blockers(char* text, size_t text_bytes, int* count) {
  return guard([&] {
    int& lines = deref(count, "count");
    lines = librun::capi::give_lines(librun::StatusBoard::instance().blockers(), text, text_bytes);
  });
}

librun_status_t librun_checkpoint_notes(char* text, size_t text_bytes, int* count) {
  return guard([&] {
    int& lines = deref(count, "count");
    lines = librun::capi::give_lines(librun::StatusBoard::instance().notes(), text, text_bytes);
  });
}

librun_status_t librun_device_probe(librun_device_t device, char* name, size_t name_bytes) {
  return guard([&] {
    if (device != LIBRUN_DEVICE_HOST && device != LIBRUN_DEVICE_CUDA)
      librun::capi::reject_argument("probe LIBRUN_DEVICE_HOST or LIBRUN_DEVICE_CUDA.");
    const auto found = device == LIBRUN_DEVICE_HOST
                           ? librun::make_host_device(librun::setting_value("LIBRUN_ISA"))
                           : librun::make_cuda_device(-1, {librun::setting_value("LIBRUN_IPC")});
    if (name) librun::capi::give_text(found->info().name, name, name_bytes);
  });
}

librun_status_t librun_settings_json(char* text, size_t text_bytes, size_t* needed) {
  return guard([&] {
    const std::string json = librun::settings_json();
    librun::capi::give_text(json, text, text_bytes);
    if (needed) *needed = json.size() + 1;
  });
}

}  // extern "C"
