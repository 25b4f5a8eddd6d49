// SPDX-License-Identifier: Apache-2.0
#include "car_stress/junit.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace car::stress {
namespace {

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

std::string case_text(const TestSuite& suite, const TestCase& one) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                       escape(suite.name), escape(one.name), one.seconds);
  if (one.failure.empty()) return head + "/>\n";
  const std::string failure = escape(one.failure);
  const std::string first_line = failure.substr(0, failure.find('\n'));
  return fmt::format("{}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n", head,
                     first_line, failure);
}

}  // namespace

std::string junit_text(const TestSuite& suite) {
  const auto failures =
      std::ranges::count_if(suite.cases, [](const TestCase& one) { return !one.failure.empty(); });
  const std::string counts = fmt::format(
      "name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"{:.3f}\"",
      escape(suite.name), suite.cases.size(), failures, suite.seconds);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n"
      "  <testsuite {0} timestamp=\"{1:%Y-%m-%dT%H:%M:%S}\">\n    <properties>\n",
      counts, fmt::gmtime(now));
  for (const auto& [name, value] : suite.properties)
    text +=
        fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escape(name), escape(value));
  text += "    </properties>\n";
  for (const TestCase& one : suite.cases) text += case_text(suite, one);
  return text + fmt::format("    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
                            escape(suite.output));
}

}  // namespace car::stress
