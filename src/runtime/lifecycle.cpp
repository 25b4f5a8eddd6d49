// SPDX-License-Identifier: Apache-2.0
#include "runtime/lifecycle.hpp"

namespace librun {
namespace {

struct Row {
  Call call;
  const char* name;
  Verdict active, suspended, failed, closed;
};

using enum Verdict;

constexpr Row kRows[] = {
    {Call::all_reduce, "all_reduce", run, is_suspended, is_failed, is_closed},
    {Call::register_buffer, "register", run, is_suspended, is_failed, is_closed},
    {Call::unregister_buffer, "unregister", run, local, local, is_closed},
    {Call::graph_begin, "graph_begin", run, is_suspended, is_failed, is_closed},
    {Call::graph_end, "graph_end", run, is_suspended, is_failed, is_closed},
    {Call::graph_launch, "graph_launch", run, is_suspended, is_failed, is_closed},
    {Call::allocate, "malloc", run, run, is_failed, is_closed},
    {Call::deallocate, "free", run, run, run, run},
    {Call::synchronize, "synchronize", run, run, is_failed, is_closed},
    {Call::plan, "plan", run, run, is_failed, is_closed},
    {Call::suspend_requested, "suspend_requested", run, is_suspended, is_failed, is_closed},
    {Call::check, "check", run, run, is_failed, nothing},
    {Call::suspend, "suspend", transition, agree_and_leave, is_failed, is_closed},
    {Call::resume, "resume", agree_and_leave, transition, is_failed, is_closed},
    {Call::abort, "abort", transition, transition, nothing, nothing},
    {Call::close, "close", transition, transition, local, nothing},
};

const Row& row_of(Call call) { return kRows[static_cast<int>(call)]; }

}  // namespace

Verdict admit(librun_state_t state, Call call) {
  const Row& row = row_of(call);
  switch (state) {
    case LIBRUN_ACTIVE:
      return row.active;
    case LIBRUN_SUSPENDED:
      return row.suspended;
    case LIBRUN_FAILED_STATE:
      return row.failed;
    case LIBRUN_CLOSED:
      return row.closed;
  }
  return is_closed;
}

const char* call_name(Call call) { return row_of(call).name; }

}  // namespace librun
