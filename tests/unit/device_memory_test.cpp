// SPDX-License-Identifier: Apache-2.0
// The seam of the tools, on every device that is here.
#include "common/device_memory.hpp"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/gpu_info.hpp"
#include "common/host_copy.hpp"
#include "common/hosts.hpp"
#include "support/catch.hpp"

namespace {

using namespace car;

constexpr std::size_t kBytes = 5000;

std::vector<std::unique_ptr<Device>> all_devices() {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(make_host_device());
  if (cuda_device_count() > 0) devices.push_back(make_cuda_device(0));
  return devices;
}

bool all_are(Device& device, const std::byte* memory, std::byte value) {
  const HostCopy copy(device, memory, kBytes);
  for (std::size_t i = 0; i < kBytes; ++i)
    if (copy.data()[i] != value) return false;
  return true;
}

}  // namespace

TEST_CASE("memory of a device is filled, written, copied and read") {
  for (const auto& device : all_devices()) {
    for (const Place place : {Place::device, Place::pinned}) {
      const DeviceBuffer a(*device, kBytes, place);
      DeviceBuffer b(*device, kBytes);
      device->fill(a.data(), std::byte{7}, kBytes);
      CHECK(all_are(*device, a.data(), std::byte{7}));
      device->copy(b.data(), a.data(), kBytes);
      const DeviceBuffer moved(std::move(b));
      CHECK(b.data() == nullptr);
      CHECK(all_are(*device, moved.data(), std::byte{7}));
      write_through(*device, moved.data(), kBytes,
                    [](std::byte* bytes) { std::memset(bytes, 9, kBytes); });
      CHECK(all_are(*device, moved.data(), std::byte{9}));
    }
  }
}

TEST_CASE("memory of the host that is pinned is the host's to touch") {
  for (const auto& device : all_devices()) {
    const DeviceBuffer memory(*device, sizeof(double), Place::pinned);
    auto* const value = reinterpret_cast<double*>(memory.data());
    *value = 1.5;
    CHECK(*value == 1.5);
  }
}

TEST_CASE("time on a stream goes forward") {
  for (const auto& device : all_devices()) {
    const DeviceStream stream = make_stream(*device);
    StreamTimer timer(*device);
    timer.start(stream.get());
    timer.stop(stream.get());
    device->synchronize(stream.get());
    CHECK(timer.elapsed_us() >= 0);
    CHECK(timer.elapsed_us() < 1e6);
  }
}

TEST_CASE("addresses that are taken cannot be taken again until they are given back") {
  constexpr std::size_t kRange = std::size_t{4} << 20;
  // Nothing lives here on 64-bit Linux: far above the heap, far below libraries and stacks.
  auto* const address = reinterpret_cast<void*>(std::uintptr_t{0x300000000000});
  const auto device = make_host_device();
  for (int i = 0; i < 2; ++i) {
    REQUIRE(device->occupy(address, kRange));
    CHECK(!device->occupy(address, kRange));
    device->vacate(address, kRange);
  }
}

TEST_CASE("ranks share a GPU when host and UUID are the same") {
  const auto on_gpu = [](const char* host, int ordinal, unsigned char id) {
    DeviceIdentity identity{"gpu", "", {}};
    identity.uuid[3] = id;
    return RankPlace{host, 1, ordinal, identity};
  };
  // The same ordinal need not be the same GPU, nor another ordinal another one.
  std::vector<RankPlace> places{on_gpu("a", 0, 1), on_gpu("a", 0, 2), on_gpu("b", 0, 1)};
  CHECK(ranks_on_gpu_of(places, 0) == 1);
  CHECK(!any_gpu_is_shared(places));
  places.push_back(on_gpu("a", 1, 2));
  CHECK(ranks_on_gpu_of(places, 1) == 2);
  CHECK(any_gpu_is_shared(places));
  const std::vector<RankPlace> on_host{{"a", 1, -1, {}}, {"a", 2, -1, {}}};
  CHECK(!any_gpu_is_shared(on_host));
}

TEST_CASE("what there is of CUDA is told, or why there is none") {
  const nlohmann::json gpus = collect_gpus();
  const bool available = gpus.at("available").get<bool>();
  CHECK(available == (cuda_device_count() > 0));
  CHECK(gpus_text(gpus).empty() == !available);
  if (!available) {
    CHECK(!gpus.at("reason").get<std::string>().empty());
    CHECK_THROWS_AS(make_cuda_device(0), std::runtime_error);
  }
}

TEST_CASE("GPUs as text: a line each, and who reaches whom") {
  const auto gpu = [](int ordinal) {
    return nlohmann::json{{"ordinal", ordinal},
                          {"name", "H200"},
                          {"uuid", "GPU-0"},
                          {"bus_id", "0000:1b:00.0"},
                          {"compute_capability", "9.0"},
                          {"memory_bytes", 1 << 30},
                          {"exports_file_descriptors", true}};
  };
  const nlohmann::json gpus{
      {"available", true},
      {"driver",
       {{"cuda", "12.8"},
        {"runtime", "13.0"},
        {"kernel_module", "570.1"},
        {"checkpoint", {{"cuCheckpointProcessLock", true}}}}},
      {"gpus", {gpu(0), gpu(1)}},
      {"peers", nlohmann::json::parse(R"([["self", "atomics"], ["access", "self"]])")}};
  const std::string text = gpus_text(gpus);
  for (const char* part : {"12.8 (570.1)", "in this driver", "1024 MiB", "atomics", "from 1"})
    CHECK(text.find(part) != std::string::npos);
}
