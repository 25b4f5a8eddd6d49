// SPDX-License-Identifier: Apache-2.0
// What a call will take: by the settings, by the user's tables, by what is registered; and that the
// ranks cannot differ in it.
#include <unistd.h>

#include <fstream>

#include "support/job.hpp"

using namespace librun_test;

namespace {

/// A file of this rank alone, for as long as it lives.
class TuningFile {
 public:
  explicit TuningFile(const std::string& tables)
      : path_("/tmp/librun_plan_test_" + std::to_string(::getpid())) {
    std::ofstream(path_) << R"({"schema": "librun.tuning/1", "tables": [)" << tables << "]}";
  }
  ~TuningFile() { ::unlink(path_.c_str()); }
  TuningFile(const TuningFile&) = delete;
  TuningFile& operator=(const TuningFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A table for whatever device this is.
std::string table_for(const std::string& device, const std::string& steps) {
  return R"({"device": ")" + device + R"(", )" + steps + "}";
}

std::string device_name() {
  librun::Communicator comm = create();
  const librun_plan_t plan = comm.plan(1, LIBRUN_FLOAT32);
  CHECK_OK(librun_comm_close(comm.get()));
  return plan.device;
}

void check_sums(librun::Communicator& comm) {
  for (const std::size_t count : {1, 250, 251, 5000, 300000})
    CHECK(sum_difference(comm, 7, count) == "");
}

void check_creation_fails(const std::string& words) {
  librun_comm_t comm = nullptr;
  CHECK_STATUS(librun_comm_create(MPI_COMM_WORLD, nullptr, &comm), LIBRUN_INVALID_ARGUMENT);
  CHECK(contains(last_error(), words));
  CHECK(comm == nullptr);
}

}  // namespace

TEST_CASE("a forced algorithm is what every call takes") {
  for (const librun_algo_t algo : {LIBRUN_ALGO_LL, LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED}) {
    librun::Communicator comm = create(config_of(algo));
    for (const std::size_t count : {0, 1, 1 << 20})
      CHECK(comm.plan(count, LIBRUN_FLOAT64).algo == algo);
    CHECK_OK(librun_comm_close(comm.get()));
  }
}

TEST_CASE("a file of tables chooses, also after a resume, and the sums stay right") {
  const std::string device = device_name();
  const TuningFile file(
      table_for(device, R"("registered": true, "steps": [{"algo": "zero_copy"}])") + ", " +
      table_for(device, R"("element_bytes": 8, "steps": [{"algo": "two_shot"}])") + ", " +
      table_for(device, R"("steps": [{"up_to_bytes": 1000, "algo": "two_shot"},
                                     {"up_to_bytes": 20000, "algo": "ll"},
                                     {"algo": "one_shot"}])"));
  const ScopedEnv env{{"LIBRUN_TUNING", file.path()}};
  librun::Communicator comm = create();
  const auto check_plans = [&] {
    CHECK(comm.plan(250, LIBRUN_FLOAT32).algo == LIBRUN_ALGO_TWO_SHOT);
    CHECK(comm.plan(251, LIBRUN_FLOAT32).algo == LIBRUN_ALGO_LL);
    CHECK(comm.plan(5001, LIBRUN_FLOAT32).algo == LIBRUN_ALGO_ONE_SHOT);
    CHECK(comm.plan(5001, LIBRUN_INT64).algo == LIBRUN_ALGO_TWO_SHOT);
  };
  check_plans();
  check_sums(comm);
  CHECK(comm.suspend());
  check_plans();
  CHECK(comm.resume());
  check_plans();
  check_sums(comm);
  void* memory = comm.allocate(4096);
  librun_buffer_t buffer{};
  CHECK_OK(librun_register(comm.get(), memory, 4096, &buffer));
  CHECK(comm.plan(1, LIBRUN_FLOAT32).algo == LIBRUN_ALGO_ZERO_COPY);
  check_sums(comm);
  CHECK_OK(librun_comm_close(comm.get()));
}

TEST_CASE("ranks with different tables, or none, are told of it") {
  const TuningFile file(table_for(
      "host", R"("steps": [{"algo": "ll"}], "made": "by rank )" + std::to_string(rank()) + "\""));
  {
    const ScopedEnv env{{"LIBRUN_TUNING", file.path()}};
    check_creation_fails("LIBRUN_TUNING is another file on rank 1 and set on rank 0");
  }
  const ScopedEnv env{{"LIBRUN_TUNING", rank() == 1 ? file.path() : ""}};
  check_creation_fails("LIBRUN_TUNING is another file on rank 1 and not set on rank 0");
}

TEST_CASE("a bad file on one rank fails the creation on all") {
  const TuningFile file(table_for("host", R"("steps": [])"));
  const ScopedEnv env{{"LIBRUN_TUNING", rank() == 1 ? file.path() : ""}};
  check_creation_fails("on rank 1: LIBRUN_TUNING: " + std::string("/tmp/librun_plan_test_"));
  CHECK(contains(last_error(), "tables[0].steps has 0 steps"));
}

TEST_CASE("LIBRUN_MAX_BLOCKS bounds what a launch takes of a GPU; the same bits") {
  const ScopedEnv env{{"LIBRUN_MAX_BLOCKS", "2"}};
  for (const librun_algo_t algo : {LIBRUN_ALGO_AUTO, LIBRUN_ALGO_LL, LIBRUN_ALGO_ONE_SHOT,
                                   LIBRUN_ALGO_TWO_SHOT, LIBRUN_ALGO_STEPPED}) {
    librun::Communicator comm = create(config_of(algo));
    const bool on_gpu = comm.plan(1, LIBRUN_FLOAT32).device != std::string("host");
    CHECK(comm.plan(1 << 24, LIBRUN_FLOAT32).blocks == (on_gpu ? 2 : 0));
    CHECK(comm.plan(1, LIBRUN_FLOAT32).blocks == (on_gpu ? 1 : 0));
    check_sums(comm);
    CHECK_OK(librun_comm_close(comm.get()));
  }
  const ScopedEnv odd{{"LIBRUN_MAX_BLOCKS", rank() == 1 ? "3" : "auto"}};
  check_creation_fails("LIBRUN_MAX_BLOCKS is 3 on rank 1 and auto on rank 0");
}
