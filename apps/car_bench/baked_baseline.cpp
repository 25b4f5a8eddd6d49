// SPDX-License-Identifier: Apache-2.0
// librun with its peers' pointers as arguments of the kernels, not from the table.
#include <cstdlib>

#include "car_bench/baseline.hpp"
#include "car_bench/librun_way.hpp"

namespace car::bench {
namespace {

/// Graphs of librun's own communicator: another one would have another arena, and where that lies
/// makes up to a tenth.
class BakedBaseline final : public Baseline {
 public:
  explicit BakedBaseline(const Options& options) : options_(options) {}

  bool takes(const Work& work) const override {
    return work.dtype == LIBRUN_FLOAT32 && work.op == LIBRUN_SUM &&
           work.algo != LIBRUN_ALGO_ZERO_COPY && work.algo != LIBRUN_ALGO_STEPPED;
  }

  Way way(const Work& work, librun::Communicator& comm) override {
    ::setenv("LIBRUN_BAKED_POINTERS", "1", 1);
    Way way = librun_way(options_, work, comm, false);
    ::unsetenv("LIBRUN_BAKED_POINTERS");
    return way;
  }

 private:
  const Options& options_;
};

}  // namespace

std::unique_ptr<Baseline> make_baked_baseline(const Options& options) {
  return std::make_unique<BakedBaseline>(options);
}

}  // namespace car::bench
