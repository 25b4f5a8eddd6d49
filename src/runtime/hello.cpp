// SPDX-License-Identifier: Apache-2.0
// How the ranks introduce themselves, and what each concludes from all of it.
#include "runtime/hello.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ipc/topology.hpp"
#include "librun/librun.h"
#include "runtime/log.hpp"

namespace librun {
namespace {

/// Longer than most waits, and than the lag of a peer that an interrupt or a neighbour has held up:
/// who yields then gives a busy neighbour a whole time slice.
constexpr std::uint32_t kSpinUs = 200;

template <std::size_t N>
void set_text(char (&field)[N], const std::string& text) {
  text.copy(field, N - 1);
}

}  // namespace

Communicator::Hello Communicator::make_hello(const ipc::Listener& listener) const {
  Hello hello{};
  set_text(hello.boot_id, ipc::boot_id());
  set_text(hello.host, ipc::host_name());
  hello.cores = ipc::allowed_cores();
  hello.address = listener.address();
  hello.token = ipc::make_token();
  hello.arena_bytes = settings_.arena_bytes;
  // Read anew, since a restore may have moved the process to another GPU.
  const DeviceInfo info = device_->info();
  hello.device = info.kind;
  set_text(hello.device_id, info.id);
  hello.by_handle = info.by_handle;
  hello.algo = settings_.algo;
  hello.check = settings_.check;
  hello.max_blocks = settings_.cuda.max_blocks;
  hello.tuning = settings_.tuning ? settings_.tuning->digest() : 0;
  set_text(hello.device_name, info.name);
  hello.spin = settings_.spin == "yield"  ? Hello::Spin::yield
               : settings_.spin == "spin" ? Hello::Spin::spin
                                          : Hello::Spin::automatic;
  return hello;
}

// Every rank sees the same hellos, so all come to the same error without asking again.
void Communicator::learn_from(const std::vector<Hello>& hellos) {
  std::vector<cpu_set_t> cores;
  for (std::size_t peer = 0; peer < hellos.size(); ++peer) {
    const Hello& theirs = hellos[peer];
    const Hello& first = hellos[0];
    const int at = static_cast<int>(peer);
    if (std::strcmp(theirs.boot_id, first.boot_id) != 0)
      throw Error(LIBRUN_UNSUPPORTED, at,
                  fmt::format("rank {} is on host {}, rank 0 is on host {}: librun works within "
                              "one node.",
                              peer, theirs.host, first.host),
                  "split the communicator with MPI_Comm_split_type(MPI_COMM_TYPE_SHARED).");
    const auto differs = [&](const char* what, const std::string& a, const std::string& b) {
      if (a == b) return;
      throw Error(LIBRUN_INVALID_ARGUMENT, at,
                  fmt::format("{} is {} on rank {} and {} on rank 0.", what, a, peer, b),
                  "use the same settings on all ranks.");
    };
    differs("arena_bytes", std::to_string(theirs.arena_bytes), std::to_string(first.arena_bytes));
    differs("algo", librun_algo_name(theirs.algo), librun_algo_name(first.algo));
    differs("LIBRUN_CHECK", std::to_string(theirs.check), std::to_string(first.check));
    differs("LIBRUN_IPC", theirs.by_handle ? "legacy" : "descriptor",
            first.by_handle ? "legacy" : "descriptor");
    const auto blocks = [](const Hello& hello) {
      return hello.max_blocks == 0 ? std::string("auto") : std::to_string(hello.max_blocks);
    };
    differs("LIBRUN_MAX_BLOCKS", blocks(theirs), blocks(first));
    const auto tables = [&](const Hello& hello) {
      return hello.tuning == 0 ? "not set" : hello.tuning == first.tuning ? "set" : "another file";
    };
    differs("LIBRUN_TUNING", tables(theirs), tables(first));
    differs("device", std::to_string(theirs.device), std::to_string(first.device));
    cores.push_back(theirs.cores);
  }
  ranks_on_device_ = 1;
  for (const Hello& one : hellos) {
    const auto same = [&](const Hello& other) {
      return std::strcmp(one.device_id, other.device_id) == 0;
    };
    ranks_on_device_ = std::max(
        ranks_on_device_, static_cast<int>(std::count_if(hellos.begin(), hellos.end(), same)));
  }
  // As if a restore had put many processes on one GPU: there is no other way to a smaller layout.
  if (fault::at("crowd", rank()) == fault::Action::corrupt) ranks_on_device_ = 2 * LIBRUN_MAX_WORLD;
  const bool crowded = ipc::ranks_share_cores(cores);
  const auto gives_way = [&](const Hello& one) {
    return one.spin == Hello::Spin::yield || (one.spin == Hello::Spin::automatic && crowded);
  };
  control_->spin_us = gives_way(hellos[static_cast<std::size_t>(rank())]) ? 0 : kSpinUs;
  // What is published at once is protocol: LIBRUN_SPIN may differ between ranks.
  control_->whole_steps = std::any_of(hellos.begin(), hellos.end(), gives_way);

  TuningKey key;
  key.kind = device_info_.kind;
  key.device = hellos[0].device_name;
  key.shared = key.kind == LIBRUN_DEVICE_CUDA ? ranks_on_device_ > 1 : crowded;
  key.world = world();
  selector_.emplace(settings_.tuning.get(), std::move(key));
  if (settings_.tuning && !selector_->uses_own() && rank() == 0)
    log::write(
        log::Level::warn,
        fmt::format("LIBRUN_TUNING has no table for {} ranks on {}{}: it is of no effect", world(),
                    selector_->key().device, selector_->key().shared ? " that share it" : ""));
}

}  // namespace librun
