// SPDX-License-Identifier: Apache-2.0
// Measures one size after the other.
#pragma once

#include <vector>

#include "car_bench/baseline.hpp"
#include "car_bench/buffers.hpp"
#include "car_bench/options.hpp"
#include "car_bench/result.hpp"
#include "car_bench/work.hpp"
#include "librun/librun.hpp"

namespace car::bench {

/// Collective throughout: all ranks measure the same.
class Bench {
 public:
  Bench(const Options& options, int rank, int world, Device& device,
        std::vector<librun::Communicator>& comms, const Buffers& buffers,
        const Baselines& baselines)
      : options_(options),
        rank_(rank),
        world_(world),
        device_(device),
        stream_(make_stream(device)),
        timer_(device),
        comms_(comms),
        buffers_(buffers),
        baselines_(baselines) {}

  /// All algorithms of the options and all baselines, in turns. @return in the options' order
  std::vector<Result> measure(std::uint64_t size_bytes, librun_dtype_t dtype, librun_op_t op);

 private:
  struct Row;
  Row make_row(const Work& work, librun::Communicator& comm);
  void check(const Work& work, librun::Communicator& comm, std::uint64_t seed, Result& result);
  std::uint64_t wrong_elements(const Work& work, librun::Communicator& comm, bool in_place,
                               std::uint64_t seed);
  void tell_wrong(const Work& work, const std::byte* got, std::size_t index, std::uint64_t seed);
  double time_batch(Way& way, int iterations);
  double warm_up(Way& way);
  int batches_of(std::vector<Way*>& ways);
  void time_batches(std::vector<Way*>& ways);
  double combine(double us) const;
  bool replays() const { return options_.graph_calls > 0 && device_.is_asynchronous(); }

  const Options& options_;
  int rank_;
  int world_;
  Device& device_;
  DeviceStream stream_;
  StreamTimer timer_;
  std::vector<librun::Communicator>& comms_;
  const Buffers& buffers_;
  const Baselines& baselines_;
  bool told_wrong_ = false;
};

}  // namespace car::bench
