// SPDX-License-Identifier: Apache-2.0
#include "car_bench/baseline.hpp"

namespace car::bench {

Baselines make_baselines(const Options& options, Device& device,
                         const std::vector<RankPlace>& places) {
  Baselines baselines;
  if (options.baseline_mpi) {
    const bool on_host = !device.is_asynchronous();
    baselines.columns.push_back({"mpi", "mpi(us)", on_host ? make_mpi_baseline(options) : nullptr});
    if (!on_host)
      baselines.notes.push_back("mpi: n/a: the data is in the memory of GPUs; use --device host");
  }
  if (options.baseline_nccl) add_nccl(options, device, places, baselines);
  return baselines;
}

void Baselines::close() {
  for (; !columns.empty(); columns.pop_back())
    if (columns.back().library) columns.back().library->close();
}

}  // namespace car::bench
