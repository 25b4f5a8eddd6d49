// SPDX-License-Identifier: Apache-2.0
// librun as one way to measure.
#pragma once

#include "car_bench/options.hpp"
#include "car_bench/work.hpp"
#include "librun/librun.hpp"

namespace car::bench {

/// Calls of `comm`, eager or as a graph, which the way keeps. Collective, like its calls.
Way librun_way(const Options& options, const Work& work, librun::Communicator& comm, bool in_place);

}  // namespace car::bench
