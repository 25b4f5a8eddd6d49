// SPDX-License-Identifier: Apache-2.0
// The C++ API: owners, exceptions, types.
#include <chrono>
#include <type_traits>

#include "support/job.hpp"

using namespace librun_test;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<librun::Communicator>);
static_assert(std::is_nothrow_move_constructible_v<librun::Communicator>);
static_assert(std::is_nothrow_move_assignable_v<librun::Graph>);
static_assert(librun::dtype_of<float>() == LIBRUN_FLOAT32);
static_assert(librun::dtype_of<double>() == LIBRUN_FLOAT64);
static_assert(librun::dtype_of<signed char>() == LIBRUN_INT8);
static_assert(librun::dtype_of<unsigned char>() == LIBRUN_UINT8);
static_assert(librun::dtype_of<int>() == LIBRUN_INT32);
static_assert(librun::dtype_of<unsigned>() == LIBRUN_UINT32);
static_assert(librun::dtype_of<long>() == LIBRUN_INT64);
static_assert(librun::dtype_of<unsigned long long>() == LIBRUN_UINT64);

namespace {

template <class Call>
librun::Error error_of(Call&& call) {
  try {
    call();
  } catch (const librun::Error& error) {
    return error;
  }
  return {LIBRUN_OK, -1, "nothing was thrown"};
}

}  // namespace

TEST_CASE("one value, and arrays of several types") {
  librun::Communicator comm(MPI_COMM_WORLD);
  CHECK(comm.all_reduce(1.5) == 1.5 * world());
  CHECK(comm.all_reduce(rank(), LIBRUN_MAX) == world() - 1);
  CHECK(comm.all_reduce(2L, LIBRUN_PROD) == 1L << world());
  std::vector<unsigned char> bytes(300, 200);
  comm.all_reduce(bytes.data(), bytes.data(), bytes.size());
  CHECK(bytes[299] == static_cast<unsigned char>(200 * world()));
  comm.synchronize();
  comm.close();
}

TEST_CASE("an error holds code, rank, text and hint") {
  librun::Communicator comm(MPI_COMM_WORLD);
  float values[8] = {};
  const librun::Error error = error_of([&] { comm.all_reduce(values, values + 1, 4); });
  CHECK(error.code() == LIBRUN_INVALID_ARGUMENT);
  CHECK(error.rank() == 0);
  CHECK(contains(error.text(), "overlap"));
  CHECK(error.hint() != "");
  CHECK(contains(error.what(), error.text()));
  CHECK(contains(error.what(), "Hint: " + error.hint()));
  comm.close();
  CHECK(error_of([&] { comm.all_reduce(1.0f); }).code() == LIBRUN_INVALID_STATE);
}

TEST_CASE("an empty communicator and an empty graph throw") {
  librun::Communicator none;
  CHECK_FALSE(none);
  CHECK(error_of([&] { none.all_reduce(1); }).code() == LIBRUN_INVALID_ARGUMENT);
  CHECK(error_of([&] { none.suspend(); }).code() == LIBRUN_INVALID_ARGUMENT);
  CHECK(error_of([&] { static_cast<void>(none.stats()); }).code() == LIBRUN_INVALID_ARGUMENT);
  CHECK(error_of([] { librun::Graph().launch(); }).code() == LIBRUN_INVALID_ARGUMENT);
}

TEST_CASE("handles move and are destroyed once") {
  librun::Communicator first(MPI_COMM_WORLD);
  librun::Communicator second = std::move(first);
  CHECK_FALSE(first);
  CHECK(second.all_reduce(1) == world());
  librun::Communicator& same = second;
  second = std::move(same);
  CHECK(second);
  librun::Communicator third(MPI_COMM_WORLD);
  second.close();
  second = std::move(third);
  CHECK(second.all_reduce(1) == world());
  second.close();
}

TEST_CASE("suspend and resume tell whether they did something") {
  librun::Communicator comm(MPI_COMM_WORLD);
  CHECK(comm.suspend(10s));
  CHECK_FALSE(comm.suspend());
  CHECK(comm.state() == LIBRUN_SUSPENDED);
  CHECK(comm.resume(10s));
  CHECK_FALSE(comm.resume());
  CHECK(librun::suspend_all());
  CHECK(librun::checkpoint_blockers().empty());
  CHECK(librun::resume_all());
  CHECK_FALSE(librun::checkpoint_blockers().empty());
  comm.check();
  comm.close();
}

TEST_CASE("registered memory") {
  librun::Communicator comm(MPI_COMM_WORLD);
  auto* data = static_cast<double*>(comm.allocate(8000));
  librun_buffer_t buffer = comm.register_buffer(data, 8000);
  CHECK(comm.stats().registered_buffers == 1);
  for (int i = 0; i < 1000; ++i) data[i] = i;
  comm.all_reduce(data, data, 1000);
  CHECK(data[999] == 999.0 * world());
  CHECK(error_of([&] { comm.deallocate(data); }).code() == LIBRUN_REJECTED);
  comm.unregister_buffer(buffer);
  comm.deallocate(data);
  comm.close();
}
