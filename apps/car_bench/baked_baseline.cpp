// SPDX-License-Identifier: Apache-2.0
// librun with its peers' pointers as arguments of the kernels, not from the table.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "car_bench/baseline.hpp"
#include "car_bench/librun_way.hpp"

namespace car::bench {
namespace {

class BakedBaseline final : public Baseline {
 public:
  explicit BakedBaseline(const Options& options) : options_(options) {
    ::setenv("LIBRUN_BAKED_POINTERS", "1", 1);
    for (const librun_algo_t algo : options.algos) {
      librun::Config config;
      config.device = LIBRUN_DEVICE_CUDA;
      config.algo = algo;
      comms_.emplace_back(MPI_COMM_WORLD, config);
    }
    ::unsetenv("LIBRUN_BAKED_POINTERS");
  }

  bool takes(const Work& work) const override {
    return work.dtype == LIBRUN_FLOAT32 && work.op == LIBRUN_SUM &&
           work.algo != LIBRUN_ALGO_ZERO_COPY && work.algo != LIBRUN_ALGO_STEPPED;
  }

  Way way(const Work& work) override {
    return librun_way(options_, work, comm_of(work.algo), false);
  }

  void close() override {
    for (librun::Communicator& comm : comms_) comm.close();
  }

 private:
  librun::Communicator& comm_of(librun_algo_t algo) {
    const auto at = std::find(options_.algos.begin(), options_.algos.end(), algo);
    return comms_[static_cast<std::size_t>(at - options_.algos.begin())];
  }

  const Options& options_;
  std::vector<librun::Communicator> comms_;
};

}  // namespace

std::unique_ptr<Baseline> make_baked_baseline(const Options& options) {
  return std::make_unique<BakedBaseline>(options);
}

}  // namespace car::bench
