// SPDX-License-Identifier: Apache-2.0
// The one place that knows which major version of Catch2 is installed.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define LIBRUN_TEST_CATCH2_MAJOR 3
#else
#include <catch2/catch.hpp>
#define LIBRUN_TEST_CATCH2_MAJOR 2
// Version 3 has it elsewhere: what compiles here must compile there.
#pragma GCC poison Approx
#endif

#include <string>

namespace librun_test {

#if LIBRUN_TEST_CATCH2_MAJOR == 3
inline constexpr const char* kNoColour[] = {"--colour-mode", "none"};
#else
inline constexpr const char* kNoColour[] = {"--use-colour", "no"};
#endif

// Version 2 declares the listener's base only for the file that holds main().
#if LIBRUN_TEST_CATCH2_MAJOR == 3
using ListenerBase = Catch::EventListenerBase;
using AssertionEndedResult = void;
inline std::string name_of(const Catch::TestCaseStats& stats) { return stats.testInfo->name; }
#elif defined(CATCH_CONFIG_RUNNER)
using ListenerBase = Catch::TestEventListenerBase;
using AssertionEndedResult = bool;
inline std::string name_of(const Catch::TestCaseStats& stats) { return stats.testInfo.name; }
#endif

}  // namespace librun_test
