// SPDX-License-Identifier: Apache-2.0
// The JUnit format, as CI systems read it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace car::stress {

struct TestCase {
  std::string name;
  double seconds = 0;
  std::string failure;  ///< "": passed
};

struct TestSuite {
  std::string name;
  double seconds = 0;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<TestCase> cases;
  std::string output;  ///< what a person would have seen
};

std::string junit_text(const TestSuite& suite);

}  // namespace car::stress
