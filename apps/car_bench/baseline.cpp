// SPDX-License-Identifier: Apache-2.0
#include "car_bench/baseline.hpp"

namespace car::bench {

Baselines make_baselines(const Options& options, Device& device,
                         const std::vector<RankPlace>& places) {
  Baselines baselines;
  if (options.baseline_mpi) {
    baselines.columns.push_back({"mpi", "mpi(us)", make_mpi_baseline(options)});
    if (device.is_asynchronous())
      baselines.notes.push_back("mpi: through memory of the host, there and back timed too");
  }
  if (options.baseline_floor) {
    const bool host = !device.is_asynchronous();
    baselines.columns.push_back(
        {"floor", "floor(us)", host ? make_floor_baseline(options) : nullptr});
    baselines.notes.push_back(
        host ? "floor: librun's copies through the caches, nobody waiting, for float sums"
             : "floor: not on a GPU");
  }
  if (options.baseline_baked) {
    baselines.columns.push_back({"baked", "baked(us)", make_baked_baseline(options)});
    baselines.notes.push_back(
        "baked: librun's kernels with the peers' pointers as arguments, for float sums: what the "
        "table costs");
  }
  if (options.baseline_nccl) add_nccl(options, device, places, baselines);
  if (!baselines.columns.empty())
    baselines.notes.push_back("ratio: time of librun out of place / time of the column before it");
  return baselines;
}

void Baselines::close() {
  for (; !columns.empty(); columns.pop_back())
    if (columns.back().library) columns.back().library->close();
}

}  // namespace car::bench
