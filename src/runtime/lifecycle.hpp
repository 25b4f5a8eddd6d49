// SPDX-License-Identifier: Apache-2.0
// Which call does what in which state: a pure function, tested cell by cell.
#pragma once

#include "librun/types.h"

namespace librun {

enum class Call {
  all_reduce,
  register_buffer,
  unregister_buffer,
  graph_begin,
  graph_end,
  graph_launch,
  allocate,
  deallocate,
  synchronize,
  plan,
  suspend_requested,
  check,
  suspend,
  resume,
  abort,
  close
};

enum class Verdict {
  run,              ///< do the work
  local,            ///< do the part that needs no peer
  transition,       ///< collective change of state
  agree_and_leave,  ///< collective no-op: all ranks must say the same
  nothing,          ///< local no-op
  is_suspended,     ///< error
  is_failed,        ///< error, with the first cause
  is_closed         ///< error
};

Verdict admit(librun_state_t state, Call call);

const char* call_name(Call call);

}  // namespace librun
