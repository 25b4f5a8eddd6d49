// SPDX-License-Identifier: Apache-2.0
// A transition is a list of phases: local work that cannot leave early, then one agreement.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kernels/fault.hpp"
#include "runtime/agreement.hpp"
#include "runtime/log.hpp"

namespace librun {

class Phases {
 public:
  Phases(Request request, ipc::Exchange& exchange, ipc::Watch watch, ipc::Deadline deadline)
      : request_(request), exchange_(exchange), watch_(std::move(watch)), deadline_(deadline) {
    require_mpi();
  }

  /// @throws Rejection before MPI_Init and after MPI_Finalize, when any MPI call would end the
  /// process
  static void require_mpi() {
    if (!ipc::mpi_usable())
      throw Rejection(LIBRUN_MPI, -1, "MPI is not running.",
                      "make collective calls between MPI_Init and MPI_Finalize.");
  }

  /// For waits within the work of a phase: half of what is left, so that the agreement after a wait
  /// in vain still has time to tell everybody why.
  ipc::Deadline work_deadline() const {
    const auto now = std::chrono::steady_clock::now();
    return now + (deadline_ - now) / 2;
  }
  const std::vector<librun_phase_t>& timings() const { return timings_; }
  /// Whether LIBRUN_FAULT asked to corrupt what the last phase made.
  bool corrupted() const { return corrupted_; }

  /// Runs `work(Ballot&)`, then votes; whatever it throws goes into the ballot first.
  /// @throws what vote() throws
  template <class Work>
  Ballots run(const char* name, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    Ballot mine = make_ballot(request_, name);
    try {
      inject("before", name);
      work(mine);
      inject("after", name);
    } catch (const Error& error) {
      mine.set_error(error);
    } catch (const std::exception& error) {
      mine.set_error(Error(LIBRUN_SYSTEM, exchange_.rank(), error.what()));
    }
    take_news(mine, watch_, exchange_.world());
    Ballots ballots = vote(exchange_, mine, deadline_, watch_);
    record(name, start);
    return ballots;
  }

 private:
  void inject(const char* side, const char* name) {
    if constexpr (!fault::kEnabled) return;
    const std::string point = std::string(request_name(request_)) + "_" + side + "_" + name;
    const fault::Action action = fault::at(point, exchange_.rank());
    corrupted_ = action == fault::Action::corrupt;
    if (action == fault::Action::fail)
      throw Error(LIBRUN_SYSTEM, exchange_.rank(), "injected fault at " + point + ".");
  }

  void record(const char* name, std::chrono::steady_clock::time_point start) {
    using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::steady_clock;
    const auto elapsed = duration_cast<microseconds>(steady_clock::now() - start).count();
    if (log::enabled(log::Level::debug))
      log::write(log::Level::debug, std::string("phase ") + request_name(request_) + "_" + name +
                                        ": " + std::to_string(elapsed) + " us");
    if (!timings_.empty() && std::string(timings_.back().name) == name) {
      timings_.back().elapsed_us += static_cast<std::uint64_t>(elapsed);
      return;
    }
    librun_phase_t phase{};
    std::string(name).copy(phase.name, sizeof(phase.name) - 1);
    phase.elapsed_us = static_cast<std::uint64_t>(elapsed);
    timings_.push_back(phase);
  }

  Request request_;
  ipc::Exchange& exchange_;
  ipc::Watch watch_;
  ipc::Deadline deadline_;
  std::vector<librun_phase_t> timings_;
  bool corrupted_ = false;
};

}  // namespace librun
