// SPDX-License-Identifier: Apache-2.0
// The table of faults: every phase that a clean run went through x side x rank x action.
#pragma once

#include <string>
#include <vector>

namespace librun_test {

/// One row. Its text is what LIBRUN_FAULT takes, but for what the tests do themselves: `pause`
/// stops a rank and continues it, `exit` and `abort` end it, `idle` and the like are no phases.
struct FaultCase {
  std::string point;  ///< suspend_before_close, ipc_open, idle
  unsigned nth = 1;
  int rank = 0;
  std::string action;  ///< fail, delay=ms, corrupt, pause, die, exit, abort, stop

  std::string text() const;
  /// The value of LIBRUN_FAULT.
  std::string variable() const;
  /// The call that it hits: create, suspend, all_reduce; the point itself when it is no phase.
  std::string call() const;
  /// The phase that it hits, "" when it is none.
  std::string phase() const;
};

/// @throws std::invalid_argument
FaultCase parse_case(const std::string& text);

/// A place in a phase, or before it, that a clean run has passed.
struct FaultPoint {
  std::string name;
  unsigned nth;
};

/// Reads the log of a clean run at level debug: the library names its phases there.
/// @throws std::runtime_error when there are none
std::vector<FaultPoint> read_points(const std::string& log_path);

/// All rows for `world` ranks and these actions, shuffled by `seed`. die, exit, abort and stop come
/// in the states between the calls as well.
std::vector<FaultCase> make_table(const std::vector<FaultPoint>& points, int world,
                                  const std::vector<std::string>& actions, unsigned seed);

}  // namespace librun_test
