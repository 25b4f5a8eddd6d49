// SPDX-License-Identifier: Apache-2.0
// main() of the tests that run in one process.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
