// SPDX-License-Identifier: Apache-2.0
// From exceptions to statuses: the only place where they meet.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "librun/error.hpp"

namespace librun::capi {

/// Keeps the error for librun_last_error of this thread.
librun_status_t remember(librun_status_t status, int rank, const char* what, const char* text,
                         const char* hint) noexcept;

[[noreturn]] inline void reject_argument(const std::string& text) {
  throw Error(LIBRUN_INVALID_ARGUMENT, -1, text);
}
template <class T>
T& deref(T* pointer, const char* name) {
  if (!pointer) reject_argument(std::string(name) + " is null.");
  return *pointer;
}

/// Fills as much of a struct as the caller's version of it has. @param make gives the whole struct
template <class Struct, class Make>
void give_struct(Struct& to, const char* type, Make&& make) {
  const std::size_t size_bytes = to.struct_size;
  constexpr std::size_t kMostBytes = 4096;
  if (size_bytes < sizeof(std::size_t) || size_bytes > kMostBytes)
    reject_argument(std::string(type) + ".struct_size is " + std::to_string(size_bytes) +
                    ": set it to sizeof(" + type + ").");
  Struct from = make();
  from.struct_size = size_bytes;
  std::memcpy(&to, &from, std::min(size_bytes, sizeof(from)));
}

/// Gives out as many elements as there is room for, and how many there are.
template <class T>
void copy_out(const std::vector<T>& from, T* to, int capacity, int& count) {
  if (capacity < 0 || (capacity > 0 && !to))
    reject_argument("out is null or capacity is negative.");
  const int n = std::min(capacity, static_cast<int>(from.size()));
  std::copy_n(from.begin(), n, to);
  count = static_cast<int>(from.size());
}

/// Runs `body`, which returns nothing or whether something was done.
template <class Body>
librun_status_t guard(Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return LIBRUN_OK;
    } else {
      return body() ? LIBRUN_OK : LIBRUN_ALREADY_THERE;
    }
  } catch (const Error& error) {
    return remember(error.code(), error.rank(), error.what(), error.text().c_str(),
                    error.hint().c_str());
  } catch (const std::bad_alloc&) {
    return remember(LIBRUN_SYSTEM, -1, "out of memory.", "out of memory.", "");
  } catch (const std::exception& error) {
    return remember(LIBRUN_SYSTEM, -1, error.what(), error.what(), "");
  }
}

}  // namespace librun::capi
