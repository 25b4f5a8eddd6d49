// SPDX-License-Identifier: Apache-2.0
// What goes wrong for people who run this kind of software, and the run or the test that shows it
// does not here. The numbers are those of the names of the tests.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace car::stress {

struct Scenario {
  const char* id;        ///< "B05"
  const char* what;      ///< what went wrong elsewhere
  const char* backends;  ///< where it can happen
  const char* np;        ///< numbers of ranks; the first is what the preset is for
  const char* outcome;   ///< what happens here, and what is not run
  const char* tests;     ///< names for ctest -R, with blanks between them; "": none
  const char* options;   ///< of car_stress --scenario; "": there is no preset
  int fewest_ranks = 2;  ///< of the preset
};

std::span<const Scenario> scenarios();

/// The one that has a preset. @throws std::invalid_argument: there is none of this name
const Scenario& scenario_of(std::string_view id);

/// All of them. @param format text or markdown @throws std::invalid_argument
std::string scenario_list(std::string_view format);

}  // namespace car::stress
