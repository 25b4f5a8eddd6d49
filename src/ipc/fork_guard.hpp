// SPDX-License-Identifier: Apache-2.0
// A child of fork must not keep its parent's links open: they would hide the parent's death.
#pragma once

#include "kernels/unique_handle.hpp"

namespace librun::ipc {

/// Remembers a descriptor that a child of fork closes at once. Thread-safe.
void close_in_children(int fd) noexcept;
/// @return false in a child that has closed it: the number may belong to another file by now
bool forget_descriptor(int fd) noexcept;

struct LinkFdTraits {
  using type = int;
  static type null() noexcept { return -1; }
  static void close(type fd) noexcept {
    if (forget_descriptor(fd)) ::close(fd);
  }
};
using LinkFd = UniqueHandle<LinkFdTraits>;

}  // namespace librun::ipc
