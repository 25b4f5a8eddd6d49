// SPDX-License-Identifier: Apache-2.0
// The tables that choose an algorithm: which fits, what is refused, and what is shipped.
#include "runtime/tuning.hpp"

#include <unistd.h>

#include <fstream>

#include "kernels/arena.hpp"
#include "librun/error.hpp"
#include "runtime/select.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

TuningKey host_of(int world) { return {LIBRUN_DEVICE_HOST, "host", false, world}; }
TuningKey gpu_of(int world) { return {LIBRUN_DEVICE_CUDA, "NVIDIA H200", false, world}; }

std::string with_tables(const std::string& tables) {
  return R"({"schema": "librun.tuning/1", "tables": [)" + tables + "]}";
}

/// What a table says of one size.
librun_algo_t algo_of(const std::string& tables, const TuningKey& key, std::size_t size_bytes,
                      librun_dtype_t dtype = LIBRUN_FLOAT32, bool registered = false) {
  const TuningTables own = TuningTables::parse(with_tables(tables), "test");
  return Selector(&own, key).select(size_bytes, dtype, registered).algo;
}

std::string refusal(const std::string& text) {
  try {
    TuningTables::parse(text, "test");
  } catch (const Error& error) {
    CHECK(error.code() == LIBRUN_INVALID_ARGUMENT);
    return error.text();
  }
  return "taken";
}

}  // namespace

TEST_CASE("what is shipped has an answer for every world, size and type, on any device") {
  for (const librun_device_t kind : {LIBRUN_DEVICE_HOST, LIBRUN_DEVICE_CUDA})
    for (const bool shared : {false, true})
      for (int world = 1; world <= LIBRUN_MAX_WORLD; ++world) {
        const bool host = kind == LIBRUN_DEVICE_HOST;
        const Selector selector(nullptr,
                                {kind, host ? "host" : "a GPU of next year", shared, world});
        for (const librun_dtype_t dtype :
             {LIBRUN_INT8, LIBRUN_BFLOAT16, LIBRUN_FLOAT32, LIBRUN_FLOAT64})
          for (std::size_t size = 8; size < std::size_t{1} << 44; size *= 2) {
            CHECK(selector.select(size, dtype, false).algo != LIBRUN_ALGO_ZERO_COPY);
            CHECK(selector.select(size, dtype, true).algo > LIBRUN_ALGO_AUTO);
          }
      }
}

TEST_CASE("on the host one line goes as ll, and large calls without copies where they can") {
  const Selector two(nullptr, host_of(2));
  CHECK(two.select(kLineDataBytes, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_LL);
  CHECK(two.select(kLineDataBytes + 4, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(two.select(512 << 10, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(two.select(1 << 20, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_TWO_SHOT);
  CHECK(two.select(1 << 20, LIBRUN_FLOAT32, true).algo == LIBRUN_ALGO_ZERO_COPY);
  const Selector eight(nullptr, host_of(8));
  CHECK(eight.select(8, LIBRUN_FLOAT64, true).algo == LIBRUN_ALGO_LL);
  CHECK(eight.select(16 << 10, LIBRUN_FLOAT16, false).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(eight.select(1 << 20, LIBRUN_FLOAT16, false).algo == LIBRUN_ALGO_TWO_SHOT);
}

TEST_CASE("ranks that share a GPU send little data as ll, of any type and number of ranks") {
  const auto on_one_gpu = [](int world) {
    TuningKey key = gpu_of(world);
    key.shared = true;
    return Selector(nullptr, key);
  };
  for (int world = 1; world <= 16; ++world)
    for (const librun_dtype_t dtype : {LIBRUN_INT8, LIBRUN_FLOAT32, LIBRUN_FLOAT64})
      for (const bool registered : {false, true})
        for (const std::size_t size : {8, 128, 1024})
          CHECK(on_one_gpu(world).select(size, dtype, registered).algo == LIBRUN_ALGO_LL);
  CHECK(on_one_gpu(2).select(128 << 10, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_LL);
  CHECK(on_one_gpu(2).select(128 << 10, LIBRUN_FLOAT64, false).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(on_one_gpu(4).select(128 << 10, LIBRUN_FLOAT32, true).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(on_one_gpu(8).select(128 << 10, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(on_one_gpu(8).select(2 << 20, LIBRUN_FLOAT32, false).algo == LIBRUN_ALGO_TWO_SHOT);
  CHECK(on_one_gpu(8).select(2 << 20, LIBRUN_FLOAT32, true).algo == LIBRUN_ALGO_ZERO_COPY);
}

TEST_CASE("the first table that fits counts, then those that are shipped") {
  const std::string tables = R"(
    {"device": "NVIDIA H2", "world": 4, "shared": true, "steps": [{"algo": "ll"}]},
    {"device": "NVIDIA H200", "world": [2, 4], "element_bytes": 8, "steps": [{"algo": "two_shot"}]},
    {"device": "cuda", "world": [2, 4],
     "steps": [{"up_to_bytes": 100, "algo": "two_shot"}, {"algo": "one_shot"}]})";
  TuningKey shared = gpu_of(4);
  shared.shared = true;
  CHECK(algo_of(tables, shared, 1 << 20) == LIBRUN_ALGO_LL);
  CHECK(algo_of(tables, gpu_of(4), 1 << 20, LIBRUN_FLOAT64) == LIBRUN_ALGO_TWO_SHOT);
  CHECK(algo_of(tables, gpu_of(4), 100) == LIBRUN_ALGO_TWO_SHOT);
  CHECK(algo_of(tables, gpu_of(4), 104) == LIBRUN_ALGO_ONE_SHOT);
  CHECK(algo_of(tables, gpu_of(8), 8) == LIBRUN_ALGO_LL);
  CHECK(algo_of(tables, host_of(4), 1 << 20) == LIBRUN_ALGO_TWO_SHOT);
}

TEST_CASE("a table decides nothing before its from_bytes and beyond its last step") {
  const std::string tables = R"(
    {"device": "host", "from_bytes": 1000, "steps": [{"up_to_bytes": 2000, "algo": "two_shot"}]},
    {"device": "host", "steps": [{"up_to_bytes": 3000, "algo": "ll"}]})";
  const TuningTables own = TuningTables::parse(with_tables(tables), "test");
  const Selector selector(&own, host_of(2));
  const auto at = [&](std::size_t size) { return selector.select(size, LIBRUN_FLOAT32, false); };
  for (const std::size_t size : {0, 56, 999, 2001, 3000}) CHECK(at(size).algo == LIBRUN_ALGO_LL);
  for (const std::size_t size : {1000, 2000}) CHECK(at(size).algo == LIBRUN_ALGO_TWO_SHOT);
  for (const std::size_t size : {0, 1000, 3000}) CHECK(at(size).by_user);
  CHECK(at(3001).algo == LIBRUN_ALGO_ONE_SHOT);
  CHECK(!at(3001).by_user);
  CHECK(selector.uses_own());
  CHECK(!Selector(&own, gpu_of(2)).uses_own());
  CHECK(!Selector(nullptr, host_of(2)).uses_own());
}

TEST_CASE("registered buffers have tables of their own") {
  const std::string plain = R"({"device": "host", "registered": false,
                                "steps": [{"algo": "two_shot"}]})";
  // What is shipped for registered buffers comes before the user's tables for others.
  CHECK(algo_of(plain, host_of(2), 1 << 20, LIBRUN_FLOAT32, true) == LIBRUN_ALGO_ZERO_COPY);
  CHECK(algo_of(plain, host_of(2), 1 << 20) == LIBRUN_ALGO_TWO_SHOT);
  const std::string both = plain + R"(, {"device": "host", "registered": true, "steps":
      [{"up_to_bytes": 4096, "algo": "ll"}, {"algo": "zero_copy"}]})";
  CHECK(algo_of(both, host_of(2), 4096, LIBRUN_FLOAT32, true) == LIBRUN_ALGO_LL);
  CHECK(algo_of(both, host_of(2), 4097, LIBRUN_INT8, true) == LIBRUN_ALGO_ZERO_COPY);
  CHECK(algo_of(both, host_of(2), 4097, LIBRUN_INT8, false) == LIBRUN_ALGO_TWO_SHOT);
}

TEST_CASE("what is wrong with a file is told with its place") {
  const auto of_table = [](const std::string& rest) {
    return refusal(with_tables(R"({"device": "host", )" + rest + "}"));
  };
  CHECK(of_table(R"("steps": [{"algo": "ll"}])") == "taken");
  CHECK(refusal("nothing of the kind") == "test: is no JSON.");
  CHECK(refusal("[]") == "test: is no object.");
  CHECK(refusal("{}") == "test: has no \"schema\".");
  CHECK(refusal(R"({"schema": "librun.bench/1", "tables": []})") ==
        "test: schema is not \"librun.tuning/1\".");
  CHECK(refusal(with_tables("{}")) == "test: tables[0] has no \"device\".");
  CHECK(of_table(R"("steps": [{"algo": "fast"}])") ==
        "test: tables[0].steps[0].algo is \"fast\", not ll, one_shot, two_shot or zero_copy.");
  CHECK(of_table(R"("steps": [{"algo": "stepped"}])").find("is \"stepped\"") != std::string::npos);
  CHECK(of_table(R"("steps": [{"algo": "zero_copy"}])").find("registered") != std::string::npos);
  CHECK(of_table(R"("steps": [])").find("has 0 steps") != std::string::npos);
  CHECK(of_table(R"("from_bytes": -1, "steps": [{"algo": "ll"}])").find("no whole number") !=
        std::string::npos);
  CHECK(of_table(R"("steps": [{"algo": "ll"}, {"algo": "ll"}])").find("has no \"up_to_bytes\"") !=
        std::string::npos);
  CHECK(of_table(R"("steps": [{"up_to_bytes": 9, "algo": "ll"}, {"up_to_bytes": 9, "algo": "ll"},
                             {"algo": "ll"}])")
            .find("is 9, no whole number of 10 to") != std::string::npos);
  for (const char* number : {"-1", "0", "1.5", "\"8\"", "99999999999999999999"})
    CHECK(of_table(std::string(R"("steps": [{"algo": "ll", "up_to_bytes": )") + number +
                   R"(}, {"algo": "ll"}])")
              .find("no whole number") != std::string::npos);
  CHECK(of_table(R"("element_bytes": 3, "steps": [{"algo": "ll"}])").find("1, 2, 4 or 8") !=
        std::string::npos);
  CHECK(of_table(R"("world": [1, 2, 3], "steps": [{"algo": "ll"}])").find("world takes") !=
        std::string::npos);
  CHECK(of_table(R"("world": [8, 2], "steps": [{"algo": "ll"}])").find("ends before") !=
        std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(of_table("\"element_bytes\": " + deep + R"(, "steps": [{"algo": "ll"}])")
            .find("is array, no whole number") != std::string::npos);
  CHECK(of_table(R"("world": 65, "steps": [{"algo": "ll"}])").find("1 to 64") != std::string::npos);
  CHECK(of_table(R"("wolrd": 2, "steps": [{"algo": "ll"}])").find("unknown \"wolrd\"") !=
        std::string::npos);
}

TEST_CASE("a file is read, and what is none is refused") {
  char path[] = "/tmp/tuning_test_XXXXXX";
  const int fd = ::mkstemp(path);
  REQUIRE(fd >= 0);
  ::close(fd);
  std::ofstream(path) << with_tables(R"({"device": "host", "steps": [{"algo": "ll"}]})");
  const TuningTables tables = TuningTables::read(path);
  CHECK(Selector(&tables, host_of(8)).select(1 << 20, LIBRUN_FLOAT32, false).algo ==
        LIBRUN_ALGO_LL);
  CHECK(tables.digest() != TuningTables::shipped().digest());
  std::ofstream(path) << std::string(std::size_t{1} << 20, ' ');
  CHECK_THROWS_AS(TuningTables::read(path), Error);
  ::unlink(path);
  CHECK_THROWS_AS(TuningTables::read(path), Error);
  CHECK_THROWS_AS(TuningTables::read("/tmp"), Error);
  CHECK_THROWS_AS(TuningTables::read("/dev/zero"), Error);
}
