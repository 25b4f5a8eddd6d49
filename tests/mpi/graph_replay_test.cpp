// SPDX-License-Identifier: Apache-2.0
// Graphs that were recorded once replay exactly after the mappings have moved, and do no harm while
// there are none.
#include <chrono>
#include <cstdlib>
#include <list>

#include "support/ballast.hpp"
#include "support/recorded_sum.hpp"

using namespace librun_test;

namespace {

/// Suspends and resumes with the old addresses taken.
class MovingCycles {
 public:
  explicit MovingCycles(librun::Communicator& comm) : comm_(comm) {}

  void run_one() {
    const auto before = comm_.mappings();
    CHECK(comm_.suspend());
    const Ballast ballast(before);
    CHECK(comm_.resume());
    const auto after = comm_.mappings();
    REQUIRE(after.size() == before.size());
    for (std::size_t i = 0; i < after.size(); ++i) moved_ += after[i].address != before[i].address;
    taken_ += ballast.taken();
  }
  /// Otherwise the cycles proved nothing. A GPU's addresses may be kept by the library.
  bool proved_something() const { return world() == 1 || moved_ > 0 || (on_cuda() && taken_ == 0); }

 private:
  librun::Communicator& comm_;
  std::size_t moved_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace

TEST_CASE("B05 graphs replay exactly after the mappings have moved") {
  librun::Communicator comm = create();
  std::list<RecordedSum> graphs;
  graphs.emplace_back(comm, 256, false);
  graphs.emplace_back(comm, 256, true);
  graphs.emplace_back(comm, 65536, true);
  graphs.emplace_back(comm, 40001, false);
  MovingCycles cycles(comm);
  std::uint64_t k = 0;
  for (int cycle = 0; cycle < 30; ++cycle) {
    cycles.run_one();
    for (int replay = 0; replay < 3; ++replay)
      for (RecordedSum& graph : graphs) CHECK(graph.replay(++k) == "");
  }
  CHECK(cycles.proved_something());
  graphs.clear();
  comm.close();
}

// GRAPH_CYCLES=1000 for more than the twenty.
TEST_CASE("graphs of 1 KiB, 256 KiB and 8 MiB, in place and not, through many cycles") {
  const char* const wanted = std::getenv("GRAPH_CYCLES");
  const int n_cycles = wanted ? std::atoi(wanted) : 20;
  REQUIRE(n_cycles > 0);
  librun::Communicator comm = create();
  std::list<RecordedSum> graphs;
  for (const std::size_t size_bytes : {1 << 10, 256 << 10, 8 << 20})
    for (const bool in_place : {false, true}) graphs.emplace_back(comm, size_bytes / 4, in_place);
  const std::uint64_t calls = comm.stats().calls;
  MovingCycles cycles(comm);
  std::uint64_t k = 0;
  for (int cycle = 0; cycle < n_cycles; ++cycle) {
    for (RecordedSum& graph : graphs) CHECK(graph.replay(++k) == "");
    cycles.run_one();
  }
  for (RecordedSum& graph : graphs) CHECK(graph.replay(++k) == "");
  CHECK(comm.stats().calls == calls + k);
  CHECK(comm.stats().suspends == static_cast<std::uint64_t>(n_cycles));
  CHECK(cycles.proved_something());
  graphs.clear();
  comm.close();
}

TEST_CASE("a graph that is launched while suspended is refused at once and touches nothing") {
  using Clock = std::chrono::steady_clock;
  librun::Communicator comm = create();
  {
    RecordedSum sum(comm, 1000, false);
    for (std::uint64_t round = 0; round < 3; ++round) {
      CHECK(sum.replay(2 * round) == "");
      CHECK(comm.suspend());
      sum.out().assign(1000, -1);
      const auto start = Clock::now();
      CHECK(sum.launch() == LIBRUN_INVALID_STATE);
      CHECK(contains(last_error(), "suspended"));
      CHECK(Clock::now() - start < std::chrono::seconds(2));
      CHECK(sum.out() == DeviceVector<std::int32_t>(1000, -1));
      CHECK(comm.state() == LIBRUN_SUSPENDED);
      CHECK_OK(librun_check(comm.get()));
      CHECK(comm.resume());
      CHECK_OK(librun_check(comm.get()));
      CHECK(sum.replay(2 * round + 1) == "");
    }
  }
  comm.close();
}

TEST_CASE("a graph that is destroyed is refused") {
  librun::Communicator comm = create();
  const Stream stream;
  librun_graph_t graph{};
  CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
  CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  CHECK_OK(librun_graph_destroy(graph));
  CHECK_STATUS(librun_graph_launch(graph, stream.get()), LIBRUN_INVALID_ARGUMENT);
  CHECK_STATUS(librun_graph_destroy(graph), LIBRUN_INVALID_ARGUMENT);
  comm.close();
}
