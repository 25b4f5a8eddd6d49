// SPDX-License-Identifier: Apache-2.0
// A leak of a long run is found, and what only comes and goes is none.
#include "common/holdings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "kernels/unique_handle.hpp"
#include "support/catch.hpp"

using namespace car;

namespace {

/// @param cycle what the run does before each sample
HoldingsTrend trend_of(int samples, const std::function<void(int)>& cycle) {
  const auto device = make_host_device();
  const HoldingsProbe probe(*device);
  HoldingsLog log;
  for (int i = 0; i < samples; ++i) {
    cycle(i);
    log.add(probe.look());
  }
  return log.trend();
}

librun::UniqueFd memory_file() { return librun::UniqueFd(::memfd_create("test", MFD_CLOEXEC)); }

}  // namespace

TEST_CASE("a run that holds the same is flat") {
  const HoldingsTrend trend = trend_of(40, [](int) { const librun::UniqueFd fd = memory_file(); });
  CHECK(trend.is_known());
  CHECK(trend.growth() == "");
  CHECK(trend.early.descriptors > 2);
  CHECK(trend.early.threads >= 1);
  CHECK(trend.early.mappings > 5);
  CHECK(trend.early.resident_bytes > 0);
}

TEST_CASE("one descriptor a cycle is found") {
  std::vector<librun::UniqueFd> kept;
  const HoldingsTrend trend = trend_of(40, [&](int) { kept.push_back(memory_file()); });
  CHECK(trend.growth().find("descriptors") == 0);
  CHECK(trend.late.descriptors - trend.early.descriptors == 11);  // samples 19 and 30
}

TEST_CASE("one descriptor in all but a few cycles, late in a run that was flat, is found") {
  std::vector<librun::UniqueFd> kept;
  const HoldingsTrend trend = trend_of(40, [&](int i) {
    if (i > 20 && i % 4 != 0) kept.push_back(memory_file());
  });
  CHECK(trend.growth().find("descriptors") == 0);
}

TEST_CASE("mapped memory files are found") {
  std::vector<void*> kept;
  constexpr std::size_t kBytes = 4096;
  const HoldingsTrend trend = trend_of(40, [&](int) {
    const librun::UniqueFd fd = memory_file();
    kept.push_back(::mmap(nullptr, kBytes, PROT_NONE, MAP_SHARED, fd.get(), 0));
  });
  CHECK(trend.growth().find("memory_files") != std::string::npos);
  for (void* const mapped : kept) ::munmap(mapped, kBytes);
}

TEST_CASE("what is taken and given back is no leak") {
  std::vector<librun::UniqueFd> kept;
  const HoldingsTrend trend = trend_of(40, [&](int i) {
    if (i % 5 == 0) kept.clear();
    kept.push_back(memory_file());
  });
  CHECK(trend.growth() == "");
}

TEST_CASE("a run of a few cycles says nothing") {
  std::vector<librun::UniqueFd> kept;
  const HoldingsTrend trend = trend_of(7, [&](int) { kept.push_back(memory_file()); });
  CHECK(!trend.is_known());
  CHECK(trend.growth() == "");
}

TEST_CASE("a long run keeps few samples and still sees the growth") {
  HoldingsLog log;
  for (std::int64_t i = 0; i < 100000; ++i) log.add({.descriptors = 20 + i / 10000});
  const HoldingsTrend trend = log.trend();
  CHECK(trend.samples <= 1024);
  CHECK(trend.growth() == "descriptors 24 -> 27");
}
