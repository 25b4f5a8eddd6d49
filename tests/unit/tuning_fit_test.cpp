// SPDX-License-Identifier: Apache-2.0
// What car_bench --tune makes of its measurements, and of the file that is there.
#include "car_bench/tuning_fit.hpp"

#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "car_bench/tuning_file.hpp"
#include "runtime/tuning.hpp"
#include "support/catch.hpp"

using namespace car::bench;

namespace {

constexpr double kSlack = 0.02;

std::vector<MeasuredSize> measured(const std::vector<double>& ll,
                                   const std::vector<double>& two_shot) {
  std::vector<MeasuredSize> sizes;
  for (std::size_t i = 0; i < ll.size(); ++i)
    sizes.push_back(
        {std::uint64_t{8} << i, {{LIBRUN_ALGO_LL, ll[i]}, {LIBRUN_ALGO_TWO_SHOT, two_shot[i]}}});
  return sizes;
}

TunedTable table_to(std::uint64_t end, int world, librun_algo_t algo) {
  return {"host", false, world, 4, false, 0, {{end / 2, algo}, {end, LIBRUN_ALGO_TWO_SHOT}},
          "here"};
}
TunedTable table_of(int world, librun_algo_t algo) { return table_to(128, world, algo); }

/// What the library makes of a text; AUTO: no table of it decides.
librun_algo_t chosen(const std::string& text, int world, std::size_t size_bytes = 8) {
  const auto tables = librun::TuningTables::parse(text, "test");
  for (const auto* table : tables.fitting({LIBRUN_DEVICE_HOST, "host", false, world, 4, false}))
    if (const auto algo = table->algo_for(size_bytes)) return *algo;
  return LIBRUN_ALGO_AUTO;
}

}  // namespace

TEST_CASE("a step ends midway between the sizes where the fastest changes") {
  const Fit fit = fit_steps(measured({1, 1, 4, 8}, {2, 2, 2, 2}), kSlack);
  REQUIRE(fit.steps.size() == 2);
  CHECK(fit.steps[0].algo == LIBRUN_ALGO_LL);
  CHECK(fit.steps[0].up_to_bytes == 24);
  CHECK(fit.steps[1].algo == LIBRUN_ALGO_TWO_SHOT);
  CHECK(fit.steps[1].up_to_bytes == 64);
  CHECK(fit.worst_ratio == 1);
}

TEST_CASE("noise within the slack makes no step, and is told") {
  const Fit fit = fit_steps(measured({1, 1.01, 1, 1.015}, {2, 1, 2, 1}), kSlack);
  REQUIRE(fit.steps.size() == 1);
  CHECK(fit.steps[0].algo == LIBRUN_ALGO_LL);
  CHECK(fit.worst_ratio == 1.015);
}

TEST_CASE("one size, and algorithms that are alike") {
  const Fit fit = fit_steps(measured({2}, {1.99}), kSlack);
  REQUIRE(fit.steps.size() == 1);
  CHECK(fit.steps[0].algo == LIBRUN_ALGO_TWO_SHOT);
}

TEST_CASE("every size changes: as many steps as sizes") {
  const Fit fit = fit_steps(measured({1, 2, 1, 2}, {2, 1, 2, 1}), kSlack);
  CHECK(fit.steps.size() == 4);
  CHECK(fit.worst_ratio == 1);
}

TEST_CASE("a table takes the place of that for the same, the others stay; the library reads them") {
  const std::string first =
      with_tables("", {table_of(2, LIBRUN_ALGO_LL), table_of(4, LIBRUN_ALGO_LL)});
  CHECK(chosen(first, 2) == LIBRUN_ALGO_LL);
  const std::string second = with_tables(first, {table_of(4, LIBRUN_ALGO_ONE_SHOT)});
  CHECK(chosen(second, 2) == LIBRUN_ALGO_LL);
  CHECK(chosen(second, 4) == LIBRUN_ALGO_ONE_SHOT);
  CHECK(chosen(second, 8) == LIBRUN_ALGO_AUTO);
  const std::string third = with_tables(second, {table_of(4, LIBRUN_ALGO_ONE_SHOT)});
  CHECK(third == second);
}

TEST_CASE("a table that ends earlier decides less, and the one behind it the rest") {
  const std::string wide = with_tables("", {table_to(1000, 2, LIBRUN_ALGO_LL)});
  const std::string both = with_tables(wide, {table_to(100, 2, LIBRUN_ALGO_ONE_SHOT)});
  CHECK(chosen(both, 2, 8) == LIBRUN_ALGO_ONE_SHOT);
  CHECK(chosen(both, 2, 100) == LIBRUN_ALGO_TWO_SHOT);
  CHECK(chosen(both, 2, 101) == LIBRUN_ALGO_LL);
  CHECK(chosen(both, 2, 1001) == LIBRUN_ALGO_AUTO);
  CHECK(with_tables(both, {table_to(1000, 2, LIBRUN_ALGO_LL)}) == wide);
}

TEST_CASE("what else is in the file stays, and the order of members does not matter") {
  const std::string old = R"({"comment": "mine", "schema": "librun.tuning/1", "tables": [
      {"steps": [{"algo": "ll"}], "registered": false, "element_bytes": 4, "world": 2,
       "shared": false, "device": "host"}]})";
  TunedTable table = table_of(2, LIBRUN_ALGO_ONE_SHOT);
  const std::string beside = with_tables(old, {table});
  CHECK(beside.find("\"mine\"") != std::string::npos);
  CHECK(chosen(beside, 2, 1 << 20) == LIBRUN_ALGO_LL);
  table.steps.back().up_to_bytes = ~std::uint64_t{0};
  CHECK(with_tables(old, {table}).find("\"ll\"") == std::string::npos);
}

TEST_CASE("a file that holds something else is not touched") {
  const std::string path = "tuning_fit_test.json";
  std::remove(path.c_str());
  CHECK(read_tuning(path).empty());
  for (const char* text :
       {"hello", "[]", "{}", R"({"schema": "librun.bench/1", "tables": []})",
        R"({"schema": "librun.tuning/1"})", R"({"schema": "librun.tuning/1", "tables": [1]})",
        R"({"schema": "librun.tuning/1", "tables": [], "note": 1})"}) {
    std::ofstream(path) << text;
    CHECK_THROWS_AS(read_tuning(path), std::runtime_error);
  }
  const std::string good = with_tables("", {table_of(2, LIBRUN_ALGO_LL)});
  std::ofstream(path) << good;
  CHECK(read_tuning(path) == good);
  add_tables(path, {table_of(4, LIBRUN_ALGO_LL)});
  CHECK(chosen(read_tuning(path), 4) == LIBRUN_ALGO_LL);
  TunedTable bad = table_of(4, LIBRUN_ALGO_LL);
  bad.steps.assign(65, {8, LIBRUN_ALGO_LL});
  const std::string before = read_tuning(path);
  CHECK_THROWS_AS(add_tables(path, {bad}), std::runtime_error);
  CHECK(read_tuning(path) == before);
  std::remove(path.c_str());
  CHECK_THROWS_AS(read_tuning("/"), std::runtime_error);
}
