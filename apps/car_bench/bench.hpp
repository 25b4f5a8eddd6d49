// SPDX-License-Identifier: Apache-2.0
// Measures one size after the other.
#pragma once

#include <functional>
#include <vector>

#include "car_bench/buffers.hpp"
#include "car_bench/options.hpp"
#include "car_bench/result.hpp"
#include "librun/librun.hpp"

namespace car::bench {

/// Collective throughout: all ranks measure the same.
class Bench {
 public:
  Bench(const Options& options, int rank, int world, std::vector<librun::Communicator>& comms,
        const Buffers& buffers)
      : options_(options), rank_(rank), world_(world), comms_(comms), buffers_(buffers) {}

  /// @param algo_index which of the options' algorithms, and its communicator
  Result measure(std::uint64_t size_bytes, librun_dtype_t dtype, librun_op_t op,
                 std::size_t algo_index);

 private:
  struct Work;
  using Call = std::function<void()>;

  /// One way to call, and the times of its batches.
  struct Way {
    Call call;
    int calls_each = 1;
    std::vector<double> batches_us{};
  };

  void check(const Work& work, std::uint64_t seed, Result& result);
  std::uint64_t wrong_elements(const Work& work, bool in_place, std::uint64_t seed);
  void tell_wrong(const Work& work, std::size_t index, std::uint64_t seed);
  Way librun_way(const Work& work, bool in_place, std::vector<librun::Graph>& graphs);
  Way mpi_way(const Work& work);
  double time_batch(const Way& way, int iterations) const;
  int choose_iterations(const std::vector<Way>& ways) const;
  double combine(double us) const;

  const Options& options_;
  int rank_;
  int world_;
  std::vector<librun::Communicator>& comms_;
  const Buffers& buffers_;
  bool told_wrong_ = false;
};

}  // namespace car::bench
