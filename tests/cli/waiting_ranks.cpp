// SPDX-License-Identifier: Apache-2.0
// Ranks that stay as they are while somebody else checkpoints them: waiting_ranks active|suspended
// FOLDER. Rank r writes its PID to FOLDER/ready.r when it is there, and goes on when FOLDER/go
// exists: it resumes and checks sums, called and replayed, of a buffer that was registered before.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/device_choice.hpp"
#include "common/mpi_session.hpp"
#include "librun/librun.hpp"

namespace {

constexpr std::size_t kCount = 1000;
constexpr std::chrono::seconds kPatience{120};

/// Fills, sums by `launch`, and compares. @return whether all is right
template <class Launch>
bool is_right(car::Device& device, float* data, int rank, int world, int round, Launch&& launch) {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    values[i] = static_cast<float>(rank + round + static_cast<int>(i % 7));
  device.copy(data, values.data(), kCount * sizeof(float));
  launch();
  device.copy(values.data(), data, kCount * sizeof(float));
  for (std::size_t i = 0; i < kCount; ++i) {
    const int each = round + static_cast<int>(i % 7);
    const int sum = world * (world - 1) / 2 + world * each;
    if (values[i] == static_cast<float>(sum)) continue;
    fmt::print(stderr, "rank {}: round {}: element {} is {} instead of {}\n", rank, round, i,
               values[i], sum);
    return false;
  }
  return true;
}

/// Under another name first, so that nobody reads half of it.
void say_ready(const std::string& folder, int rank) {
  const std::string name = fmt::format("{}/ready.{}", folder, rank);
  std::ofstream(name + ".part") << ::getpid() << '\n';
  std::filesystem::rename(name + ".part", name);
}

bool wait_for_go(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!std::filesystem::exists(folder + "/go")) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

int run(const std::string& mode, const std::string& folder, int rank, int world) {
  const car::ChosenDevice chosen = car::choose_device(LIBRUN_DEVICE_UNSET, MPI_COMM_WORLD);
  car::Device& device = *chosen.memory;
  const car::DeviceStream stream = car::make_stream(device);
  const car::DeviceBuffer buffer(device, kCount * sizeof(float));
  auto* const data = reinterpret_cast<float*>(buffer.data());
  librun::Communicator comm(MPI_COMM_WORLD, chosen.config());
  const librun_buffer_t registered = comm.register_buffer(data, kCount * sizeof(float));
  const auto sum = [&] {
    comm.all_reduce(data, data, kCount, LIBRUN_SUM, stream.get());
    comm.synchronize(stream.get());
  };
  comm.begin_graph(stream.get());
  comm.all_reduce(data, data, kCount, LIBRUN_SUM, stream.get());
  librun::Graph graph = comm.end_graph(stream.get());
  const auto replay = [&] {
    graph.launch(stream.get());
    comm.synchronize(stream.get());
  };
  bool ok = is_right(device, data, rank, world, 1, sum);
  if (mode == "suspended") comm.suspend();
  say_ready(folder, rank);
  const bool went_on = wait_for_go(folder);
  if (mode == "suspended") comm.resume();
  ok = is_right(device, data, rank, world, 2, sum) && ok;
  ok = is_right(device, data, rank, world, 3, replay) && ok;
  comm.unregister_buffer(registered);
  comm.close();
  return ok && went_on ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const car::MpiSession session(&argc, &argv);
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "active" && mode != "suspended") return 2;
  try {
    return run(mode, argv[2], session.rank(), session.world());
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", session.rank(), error.what());
    return 1;
  }
}
