// SPDX-License-Identifier: Apache-2.0
#include "car_bench/librun_way.hpp"

#include <algorithm>
#include <memory>

namespace car::bench {

Way librun_way(const Options& options, const Work& work, librun::Communicator& comm,
               bool in_place) {
  const auto reduce = [work, &comm, in_place](int calls) {
    for (int i = 0; i < calls; ++i) {
      const Ends ends = ends_of(work, in_place, i);
      comm.all_reduce(ends.from, ends.to, work.count, work.dtype, work.op, work.stream);
    }
  };
  Way way;
  if (!work.device.is_asynchronous())
    way.input = {in_place ? work.recv : work.send, work.size_bytes};
  if (work.device.is_asynchronous()) way.finish = [work, &comm] { comm.synchronize(work.stream); };
  way.calls_each = options.aggregate * std::max(1, options.graph_calls);
  if (options.graph_calls == 0) {
    way.call = [reduce, calls = way.calls_each] { reduce(calls); };
    return way;
  }
  comm.begin_graph(work.stream);
  reduce(way.calls_each);
  auto graph = std::make_shared<librun::Graph>(comm.end_graph(work.stream));
  way.call = [work, graph] { graph->launch(work.stream); };
  return way;
}

}  // namespace car::bench
