// SPDX-License-Identifier: Apache-2.0
// Communicators over parts of six ranks, beside the user's own messages; threads; MPI handles.
#include <optional>
#include <thread>

#include "support/job.hpp"

using namespace librun_test;

namespace {

/// The ranks with the same colour; colour below 0: outside.
struct Group {
  MPI_Comm mpi = MPI_COMM_NULL;
  std::optional<librun::Communicator> comm;

  explicit Group(int colour) {
    MPI_Comm_split(MPI_COMM_WORLD, colour < 0 ? MPI_UNDEFINED : colour, rank(), &mpi);
    if (mpi != MPI_COMM_NULL) comm = create(librun::Config{}, mpi);
  }
  ~Group() {
    if (mpi != MPI_COMM_NULL) MPI_Comm_free(&mpi);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void check_sum(std::uint64_t k) {
    if (comm) CHECK(sum_difference(*comm, k, 1000, mpi) == "");
  }
  void close() {
    if (comm) CHECK_OK(librun_comm_close(comm->get()));
  }
};

/// Keeps messages of the user under way, with the tags that a library may be tempted to use.
class UserTraffic {
 public:
  UserTraffic() {
    const int next = (rank() + 1) % world();
    const int previous = (rank() + world() - 1) % world();
    for (int tag = 0; tag < kMessages; ++tag) {
      MPI_Irecv(&received_[tag], 1, MPI_INT, previous, tag, MPI_COMM_WORLD, &requests_[tag]);
      sent_[tag] = 1000 * rank() + tag;
      MPI_Isend(&sent_[tag], 1, MPI_INT, next, tag, MPI_COMM_WORLD, &requests_[kMessages + tag]);
    }
  }
  void check() {
    MPI_Waitall(2 * kMessages, requests_, MPI_STATUSES_IGNORE);
    const int previous = (rank() + world() - 1) % world();
    for (int tag = 0; tag < kMessages; ++tag) CHECK(received_[tag] == 1000 * previous + tag);
  }

 private:
  static constexpr int kMessages = 20;
  int sent_[kMessages] = {};
  int received_[kMessages] = {};
  MPI_Request requests_[2 * kMessages];
};

}  // namespace

TEST_CASE("B33 rows, columns, parts, one rank, all and evens at the same time") {
  REQUIRE(world() == 6);
  UserTraffic traffic;
  Group rows(rank() / 3);
  Group columns(rank() % 3);
  Group first_half(rank() < 3 ? 0 : -1);
  Group last_alone(rank() == 5 ? 0 : -1);
  Group all(0);
  Group evens(rank() % 2 == 0 ? 0 : -1);
  Group* const groups[] = {&rows, &columns, &first_half, &last_alone, &all, &evens};

  for (std::uint64_t k = 0; k < 20; ++k)
    for (Group* group : groups) group->check_sum(k);
  for (int cycle = 0; cycle < 3; ++cycle) {
    CHECK_OK(librun_suspend(rows.comm->get(), -1));
    columns.check_sum(100);
    CHECK_OK(librun_resume(rows.comm->get(), -1));
    for (Group* group : groups) group->check_sum(101);
  }
  traffic.check();
  for (Group* group : {&all, &rows, &evens, &last_alone, &columns, &first_half}) group->close();
}

TEST_CASE("suspend_all that one rank refuses is refused on all that it is linked to") {
  Group first(rank() < 2 ? 0 : -1);                      // ranks 0 and 1
  Group second(rank() % 2 == 0 && rank() < 4 ? 0 : -1);  // ranks 0 and 2
  Group apart(rank() == 5 ? 0 : -1);
  const Stream stream;
  librun_graph_t graph{};
  if (rank() == 2) CHECK_OK(librun_graph_begin(second.comm->get(), stream.get()));
  if (rank() < 3) {
    CHECK_STATUS(librun_suspend_all(10000), LIBRUN_REJECTED);
    CHECK(contains(last_error(), "capture"));
  }
  for (Group* group : {&first, &second})
    if (group->comm) CHECK(group->comm->state() == LIBRUN_ACTIVE);
  if (rank() == 2) CHECK_OK(librun_graph_end(second.comm->get(), stream.get(), &graph));
  if (rank() == 2) CHECK_OK(librun_graph_destroy(graph));
  first.check_sum(1);
  second.check_sum(2);
  if (rank() < 3) CHECK_OK(librun_suspend_all(-1));
  if (rank() < 3) CHECK_OK(librun_resume_all(-1));
  for (Group* group : {&first, &second, &apart}) {
    group->check_sum(3);
    group->close();
  }
}

TEST_CASE("MPI_COMM_NULL is refused by the one rank that passes it") {
  librun_comm_t handle{};
  if (rank() == 3) {
    CHECK_STATUS(librun_comm_create(MPI_COMM_NULL, nullptr, &handle), LIBRUN_INVALID_ARGUMENT);
    CHECK(contains(last_error(), "MPI_COMM_NULL"));
  }
  Group others(rank() == 3 ? -1 : 0);
  others.check_sum(1);
  others.close();
}

TEST_CASE("an inter-communicator is refused") {
  const bool low = rank() < 3;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, low ? 0 : 1, rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 3 : 0, 0, &inter);
  librun_comm_t handle{};
  CHECK_STATUS(librun_comm_create(inter, nullptr, &handle), LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), "inter-communicator"));
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST_CASE("B15 the user's communicator may be freed before the close") {
  MPI_Comm mpi = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mpi);
  librun::Communicator comm = create(librun::Config{}, mpi);
  MPI_Comm_free(&mpi);
  CHECK(comm.suspend());
  CHECK(comm.resume());
  CHECK(sum_difference(comm, 1) == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B15 moved, assigned and closed twice") {
  librun::Communicator first = create();
  librun::Communicator second = create();
  CHECK_OK(librun_comm_close(first.get()));
  first = std::move(second);
  CHECK_FALSE(second);
  CHECK(sum_difference(first, 1) == "");
  CHECK_OK(librun_comm_close(first.get()));
  CHECK_OK(librun_comm_close(first.get()));
  CHECK_STATUS(librun_comm_destroy(nullptr), LIBRUN_INVALID_ARGUMENT);
}

TEST_CASE("B15 destroyed without a close by one rank: the others are told, and by whom") {
  librun::Communicator comm = create();
  CHECK(sum_difference(comm, 1) == "");
  barrier();  // nobody is still waiting for that sum
  if (rank() == 2) {
    comm = librun::Communicator();
  } else {
    const std::string text = sum_difference(comm, 2);
    INFO(text);
    CHECK(contains(text, "rank 2"));
    CHECK_OK(librun_comm_close(comm.get()));
  }
  barrier();
}

TEST_CASE("B12 two threads on one communicator") {
  librun::Communicator comm = create();
  std::string differences[2];
  const auto work = [&](int index) {
    for (int call = 0; call < 200 && differences[index].empty(); ++call)
      differences[index] = sum_difference(comm, 5);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK(differences[0] == "");
  CHECK(differences[1] == "");
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("B12 a communicator for each thread") {
  librun::Communicator comms[] = {create(), create()};
  std::string differences[2];
  // A stream for each as well: on a common one the ranks would queue the calls in different orders.
  const Stream streams[2];
  const auto work = [&](std::size_t index) {
    for (std::uint64_t k = 0; k < 200 && differences[index].empty(); ++k)
      differences[index] = sum_difference(comms[index], k * 2 + index, 500 + 100 * index,
                                          MPI_COMM_WORLD, streams[index].get());
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK(differences[0] == "");
  CHECK(differences[1] == "");
  for (librun::Communicator& comm : comms) CHECK_OK(librun_comm_close(comm.get()));
}
