// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.hpp"

#include <cstdlib>

#include "kernels/fault.hpp"
#include "librun/error.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

/// Sets a variable for the length of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

librun_config_t unset_config() {
  librun_config_t config{};
  config.struct_size = sizeof(config);
  config.cuda_device = -1;
  return config;
}

std::string error_with(const char* name, const char* value) {
  const Variable variable(name, value);
  try {
    resolve_settings(unset_config());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a field overrules a variable, a variable the default") {
  ::unsetenv("LIBRUN_TIMEOUT_MS");
  ::unsetenv("LIBRUN_CHECK");
  CHECK(resolve_settings(unset_config()).timeout.count() == 30000);
  const Variable variable("LIBRUN_TIMEOUT_MS", "1234");
  CHECK(resolve_settings(unset_config()).timeout.count() == 1234);
  CHECK(resolve_settings(unset_config()).call_timeout.count() == 1234);
  librun_config_t config = unset_config();
  config.timeout_ms = 99;
  CHECK(resolve_settings(config).timeout.count() == 99);
  const Variable call("LIBRUN_CALL_TIMEOUT_MS", "777");
  CHECK(resolve_settings(config).call_timeout.count() == 777);
}

TEST_CASE("sizes take binary suffixes") {
  const Variable variable("LIBRUN_ARENA_BYTES", "2M");
  CHECK(resolve_settings(unset_config()).arena_bytes == std::size_t{2} << 20);
}

TEST_CASE("a bad value names the variable and what it takes") {
  const char* const bad[][2] = {{"LIBRUN_ARENA_BYTES", "12"},
                                {"LIBRUN_ARENA_BYTES", "1Q"},
                                {"LIBRUN_ARENA_BYTES", "-1"},
                                {"LIBRUN_TIMEOUT_MS", "abc"},
                                {"LIBRUN_TIMEOUT_MS", "0"},
                                {"LIBRUN_TIMEOUT_MS", "5K"},
                                {"LIBRUN_DEVICE", "gpu"},
                                {"LIBRUN_ALGO", "ring"},
                                {"LIBRUN_CHECK", "yes"},
                                {"LIBRUN_LOG", "loud"},
                                {"LIBRUN_ISA", "sse"},
                                {"LIBRUN_SPIN", "maybe"},
                                {"LIBRUN_ARENA_BYTES", "99999999999999999999"}};
  for (const auto& [name, value] : bad) {
    CAPTURE(name, value);
    const std::string text = error_with(name, value);
    CHECK(text.find(name) != std::string::npos);
    CHECK(text.find(value) != std::string::npos);
    CHECK(text.find("takes") != std::string::npos);
  }
}

TEST_CASE("an unknown variable earns a suggestion") {
  const Variable variable("LIBRUN_TIMEOUT_MSS", "5");
  const std::string text = unknown_variables();
  CHECK(text.find("LIBRUN_TIMEOUT_MSS") != std::string::npos);
  CHECK(text.find("maybe LIBRUN_TIMEOUT_MS was meant") != std::string::npos);
}

TEST_CASE("faults are read strictly") {
  const auto specs = fault::parse("result@2#7:corrupt,ipc_open@0:delay=20");
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].point == "result");
  CHECK(specs[0].rank == 2);
  CHECK(specs[0].nth == 7);
  CHECK(specs[1].delay_ms == 20);
  for (const char* bad : {"result", "result@x:fail", "@1:fail", "a@1", "a@1:explode", "a@1#:fail",
                          "a@1:delay=", ","}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(fault::parse(bad), Error);
  }
}
