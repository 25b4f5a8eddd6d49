// SPDX-License-Identifier: Apache-2.0
// ncclAllReduce, eager or in a graph, on librun's buffers and on registered windows.
#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "car_bench/baseline.hpp"
#include "car_bench/nccl_library.hpp"

namespace car::bench {
namespace {

/// A communicator over MPI_COMM_WORLD. Ends with the process when close() is not called: after a
/// failure the peers may not come.
class NcclComm {
 public:
  explicit NcclComm(std::unique_ptr<NcclLibrary> library) : library_(std::move(library)) {
    int rank = 0;
    int world = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    NcclId id{};
    if (rank == 0) library_->check(library_->get_unique_id(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    library_->check(library_->comm_init_rank(&comm_, world, id, rank), "ncclCommInitRank");
  }

  /// Collective.
  void close() {
    if (comm_) library_->comm_destroy(std::exchange(comm_, nullptr));
  }

  const NcclLibrary& library() const { return *library_; }
  void* get() const { return comm_; }
  void all_reduce(const Work& work, const Ends& ends) const {
    library_->check(library_->all_reduce(ends.from, ends.to, work.count, nccl_type(work.dtype),
                                         nccl_op(work.op), comm_, work.stream),
                    "ncclAllReduce");
  }

 private:
  std::unique_ptr<NcclLibrary> library_;
  void* comm_ = nullptr;
};

/// Two pieces of NCCL's memory that all ranks have registered alike.
class NcclWindows {
 public:
  /// Collective. `okay` is false when NCCL does not want to.
  NcclWindows(const NcclComm& comm, std::size_t each_bytes) {
    const NcclLibrary& nccl = comm.library();
    for (int at = 0; at < 2; ++at) {
      std::byte*& memory = memory_[at];
      void* allocated = nullptr;
      if (nccl.mem_alloc(&allocated, each_bytes) != 0) return;
      memory = static_cast<std::byte*>(allocated);
      const int result =
          nccl.window_register(comm.get(), memory, each_bytes, &windows_[at], kNcclSymmetricWindow);
      // A null window is NCCL's way to say that it registered nothing.
      if (result != 0 || !windows_[at]) return;
    }
    okay_ = true;
  }
  /// Collective.
  void close(const NcclComm& comm) {
    for (int at = 0; at < 2; ++at) {
      if (windows_[at]) comm.library().window_deregister(comm.get(), windows_[at]);
      if (memory_[at]) comm.library().mem_free(memory_[at]);
    }
  }
  bool okay() const { return okay_; }
  std::byte* send() const { return memory_[0]; }
  std::byte* recv() const { return memory_[1]; }

 private:
  std::byte* memory_[2] = {};
  void* windows_[2] = {};
  bool okay_ = false;
};

class NcclBaseline final : public Baseline {
 public:
  NcclBaseline(std::shared_ptr<NcclComm> comm, std::optional<NcclWindows> windows,
               const Options& options)
      : comm_(std::move(comm)),
        windows_(std::move(windows)),
        aggregate_(options.aggregate),
        graph_calls_(options.graph_calls) {}

  bool takes(const Work&) const override { return true; }
  void close() override {
    if (windows_)
      windows_->close(*comm_);
    else
      comm_->close();
  }

  Way way(const Work& given, librun::Communicator& /*comm*/) override {
    Work work = given;
    if (windows_) {
      work.send = windows_->send();
      work.recv = windows_->recv();
      for (std::byte* const memory : {work.send, work.recv})
        work.device.fill(memory, std::byte{0}, work.size_bytes);
    }
    Way way;
    way.finish = [work] { work.device.synchronize(work.stream); };
    way.calls_each = aggregate_;
    way.call = [this, work] {
      for (int i = 0; i < aggregate_; ++i) comm_->all_reduce(work, ends_of(work, false, i));
    };
    if (graph_calls_ == 0) return way;
    way.call();  // connects, which a capture should not
    way.finish();
    way.calls_each = aggregate_ * graph_calls_;
    work.device.begin_capture(work.stream);
    for (int i = 0; i < way.calls_each; ++i) comm_->all_reduce(work, ends_of(work, false, i));
    auto graph = std::make_shared<DeviceGraph>(work.device, work.device.end_capture(work.stream));
    way.call = [work, graph] { work.device.launch(graph->get(), work.stream); };
    return way;
  }

 private:
  std::shared_ptr<NcclComm> comm_;
  std::optional<NcclWindows> windows_;
  int aggregate_;
  int graph_calls_;
};

bool on_all_ranks(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

/// Null, with the reason, where NCCL cannot be had. Collective.
std::unique_ptr<NcclLibrary> open_everywhere(const Device& device,
                                             const std::vector<RankPlace>& places,
                                             std::string& why_not) {
  if (!device.is_asynchronous()) {
    why_not = "it needs --device cuda";
    return nullptr;
  }
  if (any_gpu_is_shared(places)) {
    why_not = "ranks share a GPU, which NCCL refuses";
    return nullptr;
  }
  auto library = NcclLibrary::open(why_not);
  if (on_all_ranks(library != nullptr)) return library;
  if (why_not.empty()) why_not = "another rank did not find libnccl.so.2";
  return nullptr;
}

}  // namespace

void add_nccl(const Options& options, Device& device, const std::vector<RankPlace>& places,
              Baselines& baselines) {
  const auto add = [&](std::unique_ptr<Baseline> plain, std::unique_ptr<Baseline> windows) {
    baselines.columns.push_back({"nccl", "nccl(us)", std::move(plain)});
    baselines.columns.push_back({"nccl_windows", "win(us)", std::move(windows)});
  };
  std::string why_not;
  auto library = open_everywhere(device, places, why_not);
  if (!library) {
    baselines.notes.push_back("nccl: n/a: " + why_not);
    return add(nullptr, nullptr);
  }
  const char* const nvls = std::getenv("NCCL_NVLS_ENABLE");
  baselines.notes.push_back(
      fmt::format("nccl: version {}, NCCL_NVLS_ENABLE={}; win: with registered symmetric windows",
                  library->version_text(), nvls ? nvls : "unset"));
  const bool has_windows = on_all_ranks(library->has_windows());
  auto comm = std::make_shared<NcclComm>(std::move(library));
  std::optional<NcclWindows> windows;
  if (has_windows) windows.emplace(*comm, options.max_bytes);
  const bool okay = on_all_ranks(windows && windows->okay());
  if (!okay)
    baselines.notes.push_back(has_windows ? "win: n/a: NCCL did not register the windows"
                                          : "win: n/a: this NCCL is older than its windows");
  auto plain = std::make_unique<NcclBaseline>(comm, std::nullopt, options);
  auto registered =
      okay ? std::make_unique<NcclBaseline>(comm, std::move(windows), options) : nullptr;
  add(std::move(plain), std::move(registered));
}

}  // namespace car::bench
