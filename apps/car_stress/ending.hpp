// SPDX-License-Identifier: Apache-2.0
// How a rank leaves after the library failed: with its message out, and without waiting for ranks
// that may be gone.
#pragma once

#include <mpi.h>

#include <string>

#include "car_stress/options.hpp"
#include "librun/error.hpp"

namespace car::stress {

/// What the failure means for the exit code, given --expect-failure.
/// @param at_start before the first cycle was done, where the settings or the machine are to blame
int exit_code_of(const librun::Error& error, const Options& options, bool at_start);

/// True when all ranks of `comm` came here within two seconds, so that MPI_Finalize is safe.
bool everyone_is_here(MPI_Comm comm);

/// Flushes and ends the process without MPI_Finalize, after a moment in which the other ranks can
/// print: the launcher ends them as soon as it sees this rank leave.
[[noreturn]] void leave_alone(int exit_code);

}  // namespace car::stress
