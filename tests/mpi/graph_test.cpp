// SPDX-License-Identifier: Apache-2.0
// Recorded graphs: what is recorded, in which order it runs, and what is refused.
#include "support/recorded_sum.hpp"

using namespace librun_test;

TEST_CASE("capture records and does not run") {
  librun::Communicator comm = create();
  const Stream stream;
  DeviceValue<std::int32_t> value(rank() + 1);
  DeviceValue<std::int32_t> sum(-1);
  const std::uint64_t calls = comm.stats().calls;
  comm.begin_graph(stream.get());
  comm.all_reduce(value.at(), sum.at(), 1, LIBRUN_SUM, stream.get());
  librun::Graph graph = comm.end_graph(stream.get());
  CHECK(*sum == -1);
  CHECK(comm.stats().calls == calls);
  launch_and_wait(comm, graph, stream.get());
  CHECK(*sum == world() * (world() + 1) / 2);
  *value = 1;
  launch_and_wait(comm, graph, stream.get());
  CHECK(*sum == world());
  CHECK(comm.stats().calls == calls + 2);
  comm.close();
}

TEST_CASE("calls of one graph run in order, in place and chained") {
  librun::Communicator comm = create();
  const Stream stream;
  DeviceVector<std::int64_t> a(3000);
  DeviceVector<std::int64_t> b(a.size());
  DeviceVector<std::int64_t> c(a.size());
  const auto add = [&](auto& send, auto& recv, librun_op_t op) {
    comm.all_reduce(send.data(), recv.data(), send.size(), op, stream.get());
  };
  comm.begin_graph(stream.get());
  add(a, b, LIBRUN_SUM);  // b = n * a, for equal a
  for (int i = 0; i < 4; ++i) add(b, b, LIBRUN_SUM);
  add(b, c, LIBRUN_MAX);
  librun::Graph graph = comm.end_graph(stream.get());
  std::int64_t factor = 1;
  for (int i = 0; i < 5; ++i) factor *= world();
  for (std::int64_t replay = 1; replay <= 20; ++replay) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = replay + static_cast<std::int64_t>(i);
    launch_and_wait(comm, graph, stream.get());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) wrong += c[i] != a[i] * factor;
    CHECK(wrong == 0);
  }
  comm.close();
}

TEST_CASE("B10 ranks that record different numbers of calls are told, and go on") {
  if (world() == 1) return;  // one rank agrees with itself
  librun::Communicator comm = create();
  const Stream stream;
  DeviceVector<float> data(100, 1);
  const bool odd = rank() == world() - 1;
  comm.begin_graph(stream.get());
  for (int call = 0; call < (odd ? 2 : 1); ++call)
    comm.all_reduce(data.data(), data.data(), data.size(), LIBRUN_SUM, stream.get());
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  // The second call of one rank meets the next call of the others, which is another one.
  const librun_status_t launched = launch_and_wait(comm.get(), graph, stream.get());
  const std::string text = odd ? last_error() : sum_difference(comm, 1);
  INFO(text);
  CHECK(launched == (odd ? LIBRUN_INVALID_ARGUMENT : LIBRUN_OK));
  CHECK(contains(text, "different calls"));
  CHECK(data[99] == static_cast<float>(world()));
  CHECK(comm.state() == LIBRUN_ACTIVE);
  CHECK(sum_difference(comm, 2) == "");
  CHECK_OK(librun_graph_destroy(graph));
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("captures do not nest, and an empty one is a graph") {
  librun::Communicator comm = create();
  const Stream stream;
  CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
  CHECK_STATUS(librun_graph_begin(comm.get(), stream.get()), LIBRUN_INVALID_STATE);
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  CHECK_OK(launch_and_wait(comm.get(), graph, stream.get()));
  CHECK_OK(librun_graph_destroy(graph));
  CHECK(sum_difference(comm, 1) == "");
  comm.close();
}

TEST_CASE("B21 a bad call during a capture is refused and not recorded") {
  librun::Communicator comm = create();
  const Stream stream;
  DeviceVector<float> values(4, 1);
  DeviceValue<float> result(0);
  const auto add = [&](float* recv, std::size_t count) {
    return librun_all_reduce(comm.get(), values.data(), recv, count, LIBRUN_FLOAT32, LIBRUN_SUM,
                             stream.get());
  };
  CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
  CHECK_STATUS(add(values.data() + 1, 2), LIBRUN_INVALID_ARGUMENT);
  CHECK_OK(add(result.at(), 1));
  librun_graph_t graph{};
  CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
  CHECK_OK(launch_and_wait(comm.get(), graph, stream.get()));
  CHECK(*result == static_cast<float>(world()));
  CHECK_OK(librun_graph_destroy(graph));
  comm.close();
}

TEST_CASE("a graph that outlives its communicator is refused") {
  const Stream stream;
  librun_graph_t graph{};
  {
    librun::Communicator comm = create();
    CHECK_OK(librun_graph_begin(comm.get(), stream.get()));
    CHECK_OK(librun_graph_end(comm.get(), stream.get(), &graph));
    comm.close();
    CHECK_STATUS(librun_graph_launch(graph, stream.get()), LIBRUN_INVALID_STATE);
  }
  CHECK_STATUS(librun_graph_launch(graph, stream.get()), LIBRUN_INVALID_STATE);
  CHECK_OK(librun_graph_destroy(graph));
}

TEST_CASE("B22 two thousand captures leave the slots and descriptors as they were") {
  librun::Communicator comm = create();
  const Stream stream;
  DeviceValue<float> value(1);
  DeviceValue<float> sum(0);
  for (int round = 0; round < 2000; ++round) {
    comm.begin_graph(stream.get());
    for (int call = 0; call < 8; ++call)
      comm.all_reduce(value.at(), sum.at(), 1, LIBRUN_SUM, stream.get());
    librun::Graph graph = comm.end_graph(stream.get());
    if (round % 100 == 0) launch_and_wait(comm, graph, stream.get());
  }
  CHECK(*sum == static_cast<float>(world()));
  CHECK(comm.stats().slots_used == 0);
  comm.close();
}
