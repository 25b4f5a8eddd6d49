// SPDX-License-Identifier: Apache-2.0
// Other libraries that are measured beside librun, in the same run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "car_bench/options.hpp"
#include "car_bench/work.hpp"
#include "common/hosts.hpp"
#include "librun/librun.hpp"

namespace car::bench {

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual bool takes(const Work& work) const = 0;
  /// Collective, like the calls of the way itself. The way lives no longer than this.
  /// @param comm what librun itself is measured with, for the same work
  virtual Way way(const Work& work, librun::Communicator& comm) = 0;
  /// Collective; in the reverse order of the columns.
  virtual void close() {}
};

/// A baseline that was asked for.
struct BaselineColumn {
  std::string name;                   ///< in reports: mpi, nccl, nccl_windows
  std::string title;                  ///< in the table
  std::unique_ptr<Baseline> library;  ///< null: not available here, and a note says why
};

struct Baselines {
  std::vector<BaselineColumn> columns;
  std::vector<std::string> notes;  ///< a line each, for people

  /// Collective; not in a destructor, since after a failure the peers may not come.
  void close();
};

/// What the options ask for. Collective.
Baselines make_baselines(const Options& options, Device& device,
                         const std::vector<RankPlace>& places);

std::unique_ptr<Baseline> make_mpi_baseline(const Options& options);
/// The copies of librun on the host, with nobody waiting. Collective.
std::unique_ptr<Baseline> make_floor_baseline(const Options& options);
/// librun itself, with pointers in its launches. Collective.
std::unique_ptr<Baseline> make_baked_baseline(const Options& options);
/// Adds NCCL with plain and with registered memory. Collective.
void add_nccl(const Options& options, Device& device, const std::vector<RankPlace>& places,
              Baselines& baselines);

}  // namespace car::bench
