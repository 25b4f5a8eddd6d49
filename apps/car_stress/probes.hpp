// SPDX-License-Identifier: Apache-2.0
// Calls that must be refused, on every rank, without harm.
#pragma once

#include "car_stress/group.hpp"
#include "car_stress/journal.hpp"
#include "car_stress/plan.hpp"

namespace car::stress {

/// Reports to the journal when `got` is not `wanted`. Anything that ends the communicator is
/// thrown.
/// @throws librun::Error
void expect(librun_status_t wanted, librun_status_t got, const char* what, Journal& journal);

/// Collective over the group, which stays usable.
void run_probe(Group& group, const ProbePlan& plan, Journal& journal);

/// An all-reduce and a registration on a suspended communicator: both refused. Local.
void probe_suspended(Group& group, Journal& journal);

}  // namespace car::stress
