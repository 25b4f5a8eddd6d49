// SPDX-License-Identifier: Apache-2.0
// One recorded sum of a fixed size, which is checked at each replay.
#pragma once

#include "support/job.hpp"

namespace librun_test {

class RecordedSum {
 public:
  RecordedSum(librun::Communicator& comm, std::size_t count, bool in_place)
      : comm_(comm), in_place_(in_place), send_(count), recv_(in_place ? 0 : count, -1) {
    comm_.begin_graph(stream_.get());
    comm_.all_reduce(send_.data(), out().data(), count, LIBRUN_SUM, stream_.get());
    graph_ = comm_.end_graph(stream_.get());
  }

  /// With the data of call `k`. "" when the sum is right, else what is wrong.
  std::string replay(std::uint64_t k) {
    // The graph holds the address of the data: they are written anew, never replaced.
    for (std::size_t i = 0; i < send_.size(); ++i) send_[i] = value(i, k) * (rank() + 1);
    try {
      launch_and_wait(comm_, graph_, stream_.get());
    } catch (const librun::Error& error) {
      return error.what();
    }
    const int ranks = world() * (world() + 1) / 2;
    for (std::size_t i = 0; i < send_.size(); ++i)
      if (out()[i] != value(i, k) * ranks)
        return "replay " + std::to_string(k) + ", element " + std::to_string(i) + ": got " +
               std::to_string(out()[i]) + ", expected " + std::to_string(value(i, k) * ranks);
    return "";
  }

  /// Starts it without waiting.
  librun_status_t launch() {
    try {
      graph_.launch(stream_.get());
      return LIBRUN_OK;
    } catch (const librun::Error& error) {
      return error.code();
    }
  }
  librun_status_t wait() { return librun_synchronize(comm_.get(), stream_.get()); }

  DeviceVector<std::int32_t>& out() { return in_place_ ? send_ : recv_; }

 private:
  static std::int32_t value(std::size_t i, std::uint64_t k) {
    return static_cast<std::int32_t>((i + k) % 1021) + 1;
  }

  librun::Communicator& comm_;
  bool in_place_;
  Stream stream_;
  DeviceVector<std::int32_t> send_;
  DeviceVector<std::int32_t> recv_;
  librun::Graph graph_;
};

}  // namespace librun_test
