// SPDX-License-Identifier: Apache-2.0
// The one ownership template: every handle of the code base is one of these.
#pragma once

#include <unistd.h>

#include <utility>

namespace librun {

/// Move-only owner. `Traits` names the type, the null value and how to close, which never throws.
template <class Traits>
class UniqueHandle {
 public:
  using Type = typename Traits::type;

  UniqueHandle() noexcept : handle_(Traits::null()) {}
  explicit UniqueHandle(Type handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  ~UniqueHandle() { reset(); }

  Type get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Traits::null(); }
  Type release() noexcept { return std::exchange(handle_, Traits::null()); }
  void reset() noexcept {
    if (Type handle = release(); handle != Traits::null()) Traits::close(handle);
  }

 private:
  Type handle_;
};

struct FdTraits {
  using type = int;
  static type null() noexcept { return -1; }
  static void close(type fd) noexcept { ::close(fd); }
};
using UniqueFd = UniqueHandle<FdTraits>;

}  // namespace librun
