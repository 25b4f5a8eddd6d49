// SPDX-License-Identifier: Apache-2.0
#include "car_info/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "car_info/probes.hpp"
#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.hpp"

namespace car::info {
namespace {

constexpr int kRounds = 2000;
constexpr int kSamples = 5;
/// Of one measurement of a rate.
constexpr double kBudgetUs = 20e3;
/// Flags lie in front of what is copied, each in a page of its own.
constexpr std::size_t kFlagsBytes = 4096;

struct Sizes {
  std::size_t cached;  ///< fits into the cache that the ranks share
  std::size_t large;
};
constexpr Sizes kHostSizes{std::size_t{256} << 10, std::size_t{16} << 20};
constexpr Sizes kGpuSizes{std::size_t{8} << 20, std::size_t{256} << 20};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class Calibrator {
 public:
  Calibrator(const MpiSession& session, const ChosenDevice& chosen, Watchdog& watchdog)
      : session_(session),
        watchdog_(watchdog),
        device_(*chosen.memory),
        sizes_(device_.is_asynchronous() ? kGpuSizes : kHostSizes),
        comm_(MPI_COMM_WORLD, chosen.config()),
        bytes_(kFlagsBytes + 2 * sizes_.large),
        own_(static_cast<std::byte*>(comm_.allocate(bytes_))),
        buffer_(comm_.register_buffer(own_, bytes_)) {
    const librun_plan_t plan = comm_.plan(1, LIBRUN_FLOAT32);
    result_.device = plan.device;
    result_.world = session.world();
    result_.shared = plan.shared != 0;
    probes_ =
        device_.is_asynchronous() ? make_cuda_probes(device_) : make_host_probes(plan.shared != 0);
  }

  Calibration run() {
    if (session_.world() > 1) {
      flags();
      rates("write_rate", Move::write, neighbour());
      rates("read_rate", Move::read, neighbour());
    }
    rates("own_copy_rate", Move::write, own_);
    loads();
    nodes();
    comm_.unregister_buffer(buffer_);
    comm_.close();
    return result_;
  }

 private:
  /// The same buffer of the rank after this one, or of this one alone.
  std::byte* neighbour() const { return mapped((session_.rank() + 1) % session_.world()); }
  std::byte* mapped(int rank) const {
    if (rank == session_.rank()) return own_;
    for (const librun_mapping_t& mapping : comm_.mappings())
      if (mapping.rank == rank && mapping.segment != 0)
        return static_cast<std::byte*>(mapping.address);
    throw std::runtime_error(fmt::format("the memory of rank {} is not mapped here", rank));
  }

  void add(const char* what, double value, const char* unit, std::size_t size_bytes = 0,
           int blocks = 0) {
    result_.readings.push_back({what, value, unit, size_bytes, blocks});
  }

  /// Between ranks 0 and 1, the others wait.
  void flags() {
    watchdog_.doing("flags");
    std::vector<double> samples;
    int failed = 0;
    for (int i = 0; i < kSamples; ++i) {
      device_.fill(own_, std::byte{0}, kFlagsBytes);
      MPI_Barrier(MPI_COMM_WORLD);
      if (session_.rank() < 2) {
        const auto word = [](std::byte* memory) {
          return reinterpret_cast<std::uint32_t*>(memory);
        };
        const auto ns = probes_->bounce_ns(word(own_), word(mapped(1 - session_.rank())),
                                           session_.rank() == 0, kRounds);
        failed |= !ns;
        samples.push_back(ns.value_or(0));
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (failed != 0)
      throw std::runtime_error(
          "ranks 0 and 1 do not hear from each other: do they run at the same time? "
          "Ranks that share a GPU need MPS");
    add("flag_one_way", samples.empty() ? 0 : median(samples), "ns");
  }

  double slowest_us(const std::function<double()>& measure) {
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      double us = measure();
      MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      samples.push_back(us);
    }
    return median(samples);
  }

  void rates(const char* what, Move move, std::byte* other) {
    watchdog_.doing(what);
    std::byte* const from = own_ + kFlagsBytes;
    std::byte* const to = other + kFlagsBytes + sizes_.large;
    // On the host, what is copied again and again stays in the copier's own cache: no link is seen.
    const bool passes_links = other != own_ && !device_.is_asynchronous();
    for (const std::size_t size_bytes : {sizes_.cached, sizes_.large}) {
      if (passes_links && size_bytes == sizes_.cached) continue;
      for (const int blocks : probes_->block_counts()) {
        const auto once = [&](int repeats) {
          return slowest_us(
              [&] { return probes_->move_us(move, from, to, size_bytes, blocks, repeats); });
        };
        const int repeats = std::clamp(static_cast<int>(kBudgetUs / kSamples / once(1)), 1, 1000);
        add(what, static_cast<double>(size_bytes) / once(repeats) / 1e3, "GB/s", size_bytes,
            blocks);
      }
    }
  }

  /// What the table of pointers costs where nothing hides it: one load.
  void loads() {
    watchdog_.doing("loads");
    for (const std::size_t size_bytes : {std::size_t{16} << 10, sizes_.cached, sizes_.large})
      add("dependent_load",
          slowest_us([&] { return probes_->load_ns(own_ + kFlagsBytes, size_bytes); }), "ns",
          size_bytes);
  }

  void nodes() {
    watchdog_.doing("launches");
    for (const bool early : {false, true}) {
      std::vector<double> samples;
      for (int i = 0; i < kSamples; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (const auto us = probes_->node_us(early)) samples.push_back(*us);
      }
      if (!samples.empty()) add(early ? "graph_node_early" : "graph_node", median(samples), "us");
    }
  }

  const MpiSession& session_;
  Watchdog& watchdog_;
  Device& device_;
  Sizes sizes_;
  librun::Communicator comm_;
  std::size_t bytes_;
  std::byte* own_;
  librun_buffer_t buffer_;
  std::unique_ptr<Probes> probes_;
  Calibration result_;
};

const char* meaning_of(const std::string& what) {
  if (what == "flag_one_way") return "a flag, from rank 0 until rank 1 sees it";
  if (what == "write_rate") return "writes to the next rank";
  if (what == "read_rate") return "reads from the next rank";
  if (what == "own_copy_rate") return "a copy within own memory";
  if (what == "dependent_load") return "a load that depends on the one before";
  if (what == "graph_node") return "an empty launch in a graph";
  if (what == "graph_node_early") return "the same with programmatic launch";
  return "?";
}

}  // namespace

Calibration calibrate(const MpiSession& session, const ChosenDevice& device, Watchdog& watchdog) {
  return Calibrator(session, device, watchdog).run();
}

std::string calibration_text(const Calibration& calibration) {
  std::string text = fmt::format(
      "# {}\n# {} {} on {}{}; rates: all ranks at once, the slowest\n# {:<42} {:>10} {:>7} "
      "{:>10}\n",
      version_text(), calibration.world, calibration.world == 1 ? "rank" : "ranks",
      calibration.device,
      !calibration.shared            ? ""
      : calibration.device == "host" ? ", sharing cores"
                                     : ", sharing a GPU",
      "what", "bytes", "blocks", "value");
  for (const Reading& reading : calibration.readings)
    text += fmt::format("  {:<42} {:>10} {:>7} {:>10} {}\n", meaning_of(reading.what),
                        reading.size_bytes ? size_text(reading.size_bytes) : "-",
                        reading.blocks ? std::to_string(reading.blocks) : "-",
                        fmt::format("{:.{}f}", reading.value, reading.value < 10 ? 2 : 1),
                        reading.unit);
  return text;
}

std::string calibration_json(const Calibration& calibration) {
  nlohmann::ordered_json json{{"schema", "librun.calibration/1"},
                              {"version", version_text()},
                              {"device", calibration.device},
                              {"ranks", calibration.world},
                              {"shared", calibration.shared}};
  for (const Reading& reading : calibration.readings) {
    nlohmann::ordered_json entry{
        {"what", reading.what}, {"value", reading.value}, {"unit", reading.unit}};
    if (reading.size_bytes) entry["bytes"] = reading.size_bytes;
    if (reading.blocks) entry["blocks"] = reading.blocks;
    json["readings"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

}  // namespace car::info
