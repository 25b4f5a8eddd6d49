// SPDX-License-Identifier: Apache-2.0
// A whole run on one rank: from the MPI communicators to the exit code.
#pragma once

#include <string>

#include "car_stress/options.hpp"

namespace car::stress {

/// Collective over MPI_COMM_WORLD. Returns when MPI_Finalize is safe, and otherwise ends the
/// process.
int soak(const Options& options, int rank, int world);

/// What the cycles of a run would do, in words.
std::string plan_text(const Options& options, int world);

}  // namespace car::stress
