// SPDX-License-Identifier: Apache-2.0
// The algorithms on the host. Each returns when its part is done, or early when `steps` has ended.
#pragma once

#include <cstddef>

#include "kernels/device.hpp"
#include "kernels/host/reduce.hpp"
#include "kernels/host/staging_stores.hpp"
#include "kernels/host/steps.hpp"

namespace librun::host {

/// What all bodies need: the arguments, the protocol, the reduction for this type.
struct Work {
  const AllReduceArgs& args;
  Steps& steps;
  ReduceFn reduce;
  std::size_t element_bytes;
  StagingStores& stores;

  std::size_t size_bytes() const { return args.count * element_bytes; }
};

/// A step each 3584 bytes; the data ride in the flag's own lines.
void run_ll(const Work& work);
/// A step a chunk; every rank reduces everything.
void run_one_shot(const Work& work);
/// Reduce-scatter and all-gather, pipelined: a step a chunk and one more.
void run_two_shot(const Work& work);
/// Reads the peers' registered buffers; writes their registered outputs where all have one.
void run_zero_copy(const Work& work);
/// The halves of `stepped`: neither waits, the caller puts a barrier between them.
void run_stage_publish(const Work& work);
void run_stage_reduce(const Work& work);

}  // namespace librun::host
