// SPDX-License-Identifier: Apache-2.0
// Every state with every call, against the contract in docs/design.md.
#include "runtime/lifecycle.hpp"
#include "support/catch.hpp"

using namespace librun;
using enum Verdict;

TEST_CASE("what each call does in each state") {
  struct Row {
    Call call;
    Verdict active, suspended, failed, closed;
  };
  const Row rows[] = {
      {Call::all_reduce, run, is_suspended, is_failed, is_closed},
      {Call::register_buffer, run, is_suspended, is_failed, is_closed},
      {Call::unregister_buffer, run, local, local, is_closed},
      {Call::graph_begin, run, is_suspended, is_failed, is_closed},
      {Call::graph_end, run, is_suspended, is_failed, is_closed},
      {Call::graph_launch, run, is_suspended, is_failed, is_closed},
      {Call::allocate, run, run, is_failed, is_closed},
      {Call::deallocate, run, run, run, run},
      {Call::synchronize, run, run, is_failed, is_closed},
      {Call::plan, run, run, is_failed, is_closed},
      {Call::suspend_requested, run, is_suspended, is_failed, is_closed},
      {Call::check, run, run, is_failed, nothing},
      {Call::suspend, transition, agree_and_leave, is_failed, is_closed},
      {Call::resume, agree_and_leave, transition, is_failed, is_closed},
      {Call::abort, transition, transition, nothing, nothing},
      {Call::close, transition, transition, local, nothing},
  };
  for (const Row& row : rows) {
    CAPTURE(call_name(row.call));
    CHECK(admit(LIBRUN_ACTIVE, row.call) == row.active);
    CHECK(admit(LIBRUN_SUSPENDED, row.call) == row.suspended);
    CHECK(admit(LIBRUN_FAILED_STATE, row.call) == row.failed);
    CHECK(admit(LIBRUN_CLOSED, row.call) == row.closed);
  }
}
