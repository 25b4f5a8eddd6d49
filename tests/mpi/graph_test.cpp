// SPDX-License-Identifier: Apache-2.0
// Recorded graphs: several at once, chained calls, and replays after the mappings have moved.
#include "support/ballast.hpp"
#include "support/job.hpp"

using namespace librun_test;

namespace {

/// One recorded sum of a fixed size, which is checked at each replay.
class RecordedSum {
 public:
  RecordedSum(librun::Communicator& comm, std::size_t count, bool in_place)
      : count_(count), in_place_(in_place), send_(count * 4), recv_(count * 4) {
    comm.begin_graph();
    comm.all_reduce(send_.data(), out().data(), count_, LIBRUN_FLOAT32);
    graph_ = comm.end_graph();
  }

  std::string replay(std::uint64_t k) {
    send_ = make_input_in_place(k);
    try {
      graph_.launch();
    } catch (const librun::Error& error) {
      return error.what();
    }
    return first_difference(
        LIBRUN_FLOAT32, out().data(),
        expected_result(Fill::pattern, LIBRUN_FLOAT32, LIBRUN_SUM, count_, world(), k));
  }

 private:
  Bytes& out() { return in_place_ ? send_ : recv_; }
  // The graph holds the address of the data: they are copied, never replaced.
  Bytes& make_input_in_place(std::uint64_t k) {
    const Bytes input = make_input(Fill::pattern, LIBRUN_FLOAT32, count_, rank(), k);
    std::copy(input.begin(), input.end(), send_.begin());
    return send_;
  }

  std::size_t count_;
  bool in_place_;
  Bytes send_;
  Bytes recv_;
  librun::Graph graph_;
};

}  // namespace

TEST_CASE("capture records and does not run") {
  librun::Communicator comm = create();
  std::int32_t value = rank() + 1;
  std::int32_t sum = -1;
  const std::uint64_t calls = comm.stats().calls;
  comm.begin_graph();
  comm.all_reduce(&value, &sum, 1);
  librun::Graph graph = comm.end_graph();
  CHECK(sum == -1);
  CHECK(comm.stats().calls == calls);
  graph.launch();
  CHECK(sum == world() * (world() + 1) / 2);
  value = 1;
  graph.launch();
  CHECK(sum == world());
  CHECK(comm.stats().calls == calls + 2);
  comm.close();
}

TEST_CASE("calls of one graph run in order, in place and chained") {
  librun::Communicator comm = create();
  std::vector<std::int64_t> a(3000);
  std::vector<std::int64_t> b(a.size());
  std::vector<std::int64_t> c(a.size());
  comm.begin_graph();
  comm.all_reduce(a.data(), b.data(), a.size());  // b = n * a, for equal a
  for (int i = 0; i < 4; ++i) comm.all_reduce(b.data(), b.data(), b.size());
  comm.all_reduce(b.data(), c.data(), b.size(), LIBRUN_MAX);
  librun::Graph graph = comm.end_graph();
  std::int64_t factor = 1;
  for (int i = 0; i < 5; ++i) factor *= world();
  for (std::int64_t replay = 1; replay <= 20; ++replay) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = replay + static_cast<std::int64_t>(i);
    graph.launch();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) wrong += c[i] != a[i] * factor;
    CHECK(wrong == 0);
  }
  comm.close();
}

TEST_CASE("B05 graphs replay exactly after the mappings have moved") {
  librun::Communicator comm = create();
  std::vector<RecordedSum> graphs;
  graphs.reserve(4);
  graphs.emplace_back(comm, 256, false);
  graphs.emplace_back(comm, 256, true);
  graphs.emplace_back(comm, 65536, true);
  graphs.emplace_back(comm, 40001, false);

  std::uint64_t k = 0;
  std::size_t moved = 0;
  for (int cycle = 0; cycle < 30; ++cycle) {
    const auto before = comm.mappings();
    CHECK(comm.suspend());
    const Ballast ballast(before);
    CHECK(comm.resume());
    const auto after = comm.mappings();
    REQUIRE(after.size() == before.size());
    for (std::size_t i = 0; i < after.size(); ++i) moved += after[i].address != before[i].address;
    for (int replay = 0; replay < 3; ++replay)
      for (RecordedSum& graph : graphs) CHECK(graph.replay(++k) == "");
  }
  // Otherwise this would prove nothing.
  if (world() > 1) CHECK(moved > 0);
  comm.close();
}

TEST_CASE("a graph that is launched while suspended touches nothing") {
  librun::Communicator comm = create();
  RecordedSum sum(comm, 1000, false);
  float value = 1;
  float result = -1;
  comm.begin_graph();
  comm.all_reduce(&value, &result, 1);
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), nullptr, &graph));
  CHECK(comm.suspend());
  CHECK_STATUS(librun_graph_launch(graph, nullptr), LIBRUN_INVALID_STATE);
  CHECK(contains(last_error(), "suspended"));
  CHECK(result == -1);
  CHECK(comm.state() == LIBRUN_SUSPENDED);
  CHECK(comm.resume());
  CHECK_OK(librun_check(comm.get()));
  CHECK(sum.replay(1) == "");
  CHECK_OK(librun_graph_launch(graph, nullptr));
  CHECK(result == static_cast<float>(world()));
  CHECK_OK(librun_graph_destroy(graph));
  CHECK_STATUS(librun_graph_launch(graph, nullptr), LIBRUN_INVALID_ARGUMENT);
  CHECK_STATUS(librun_graph_destroy(graph), LIBRUN_INVALID_ARGUMENT);
  comm.close();
}

TEST_CASE("captures do not nest, and an empty one is a graph") {
  librun::Communicator comm = create();
  CHECK_OK(librun_graph_begin(comm.get(), nullptr));
  CHECK_STATUS(librun_graph_begin(comm.get(), nullptr), LIBRUN_INVALID_STATE);
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), nullptr, &graph));
  CHECK_OK(librun_graph_launch(graph, nullptr));
  CHECK_OK(librun_graph_destroy(graph));
  CHECK(sum_difference(comm, 1) == "");
  comm.close();
}

TEST_CASE("a bad call during a capture is refused and not recorded") {
  librun::Communicator comm = create();
  float values[4] = {1, 1, 1, 1};
  float result = 0;
  CHECK_OK(librun_graph_begin(comm.get(), nullptr));
  CHECK_STATUS(
      librun_all_reduce(comm.get(), values, values + 1, 2, LIBRUN_FLOAT32, LIBRUN_SUM, nullptr),
      LIBRUN_INVALID_ARGUMENT);
  CHECK_OK(librun_all_reduce(comm.get(), values, &result, 1, LIBRUN_FLOAT32, LIBRUN_SUM, nullptr));
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), nullptr, &graph));
  CHECK_OK(librun_graph_launch(graph, nullptr));
  CHECK(result == static_cast<float>(world()));
  CHECK_OK(librun_graph_destroy(graph));
  comm.close();
}

TEST_CASE("a graph that outlives its communicator is refused") {
  librun_graph_t graph{};
  {
    librun::Communicator comm = create();
    CHECK_OK(librun_graph_begin(comm.get(), nullptr));
    CHECK_OK(librun_graph_end(comm.get(), nullptr, &graph));
    comm.close();
    CHECK_STATUS(librun_graph_launch(graph, nullptr), LIBRUN_INVALID_STATE);
  }
  CHECK_STATUS(librun_graph_launch(graph, nullptr), LIBRUN_INVALID_STATE);
  CHECK_OK(librun_graph_destroy(graph));
}

TEST_CASE("B22 two thousand captures leave the slots and descriptors as they were") {
  librun::Communicator comm = create();
  float value = 1;
  float sum = 0;
  for (int round = 0; round < 2000; ++round) {
    comm.begin_graph();
    for (int call = 0; call < 8; ++call) comm.all_reduce(&value, &sum, 1);
    librun::Graph graph = comm.end_graph();
    if (round % 100 == 0) graph.launch();
  }
  CHECK(sum == static_cast<float>(world()));
  CHECK(comm.stats().slots_used == 0);
  comm.close();
}
