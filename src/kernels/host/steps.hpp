// SPDX-License-Identifier: Apache-2.0
// The protocol that every algorithm is made of: steps.
#pragma once

#include <cstring>

#include "kernels/control_block.hpp"
#include "kernels/device.hpp"
#include "kernels/fault.hpp"
#include "kernels/host/wait.hpp"

namespace librun::host {

/// One step: write into the own arena at the step's parity, publish, wait until every peer has
/// published the same step, read the peers' arenas at that parity.
///
///   rank a   | begin s | write | publish s | wait all s | read ..... | begin s+1 | ...
///   rank b          | begin s | write | publish s | wait all s | read ..... | begin s+1
///
/// Why two parities suffice: I write at the parity of s again in step s+2, after I have seen every
/// peer publish s+1. A peer publishes s+1 only after it has read all of step s. So no flag is ever
/// reset, and none can be missed: the line of s stays until every peer has seen it. This holds
/// across algorithms since each of their steps publishes once and waits for all.
///
/// Memory order: data are plain stores, then the epoch is stored with release; the reader loads the
/// epoch with acquire, then reads the data.
class Steps {
 public:
  explicit Steps(const AllReduceArgs& args)
      : control_(*args.control), waiter_(control_), step_(control_.step) {}
  ~Steps() { control_.step = step_; }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  int rank() const { return static_cast<int>(control_.rank); }
  int world() const { return static_cast<int>(control_.world); }
  bool ended() const { return ended_ != Outcome::ok; }
  const ControlBlock& control() const { return control_; }

  void begin() {
    step_ = step_after(step_);
    epoch_ = make_epoch(control_.generation, step_);
  }

  /// Of the step that was begun; the same on all ranks.
  std::uint64_t number() const { return step_; }

  Line& line(int rank, std::size_t index = 0) const {
    return reinterpret_cast<Line*>(control_.arena[rank] + control_.layout.lines[parity()])[index];
  }
  std::byte* staging(int rank) const {
    return control_.arena[rank] + control_.layout.staging[parity()];
  }
  /// Staging of the step before this one.
  std::byte* previous_staging(int rank) const {
    return control_.arena[rank] + control_.layout.staging[parity() ^ 1];
  }
  std::byte* result(int rank) const {
    return control_.arena[rank] + control_.layout.result[parity()];
  }

  /// Publishes one line of this step; its data were written before.
  void publish(std::size_t index = 0, Reject reject = Reject::none) {
    if constexpr (fault::kEnabled) fault::at("before_publish", rank());
    store_release(line(rank(), index).epoch, epoch_ | static_cast<std::uint64_t>(reject)
                                                          << kRejectShift);
  }

  /// Waits for the line of one peer. @return false when the launch is over: see HostWords
  bool wait(int peer, std::size_t index = 0) {
    const std::uint64_t& word = line(peer, index).epoch;
    const Outcome outcome =
        waiter_.until([&] { return (load_acquire(word) & ~kRejectMask) == epoch_; });
    if (outcome != Outcome::ok) return finish(outcome, peer, Reject::none);
    const auto reject = static_cast<Reject>(load_acquire(word) >> kRejectShift);
    return reject == Reject::none || finish(Outcome::rejected, peer, reject);
  }

  /// Waits for the first line of every peer; looks at all of them even after a refusal, so that the
  /// rank that is named is the same everywhere.
  bool wait_all() {
    for (int peer = 0; peer < world(); ++peer)
      if (peer != rank() && !wait(peer) && ended_ != Outcome::rejected) return false;
    return ended_ == Outcome::ok;
  }

  /// Publishes a refusal, and waits so that every rank ends the call in the same step.
  void refuse(Reject reject) {
    begin();
    publish(0, reject);
    finish(Outcome::rejected, rank(), reject);
    wait_all();
  }

  /// Compares what the ranks say of this call. @return false when they differ or one refused
  bool announce(const Announcement& mine) {
    begin();
    std::memcpy(line(rank()).data, &mine, sizeof(mine));
    publish();
    return wait_all();
  }
  Announcement announced(int rank) const {
    Announcement announcement;
    std::memcpy(&announcement, line(rank).data, sizeof(announcement));
    return announcement;
  }

  /// Records how the launch ended: the first cause wins, the lowest rank among refusals.
  bool finish(Outcome outcome, int rank, Reject reject) {
    HostWords& words = *control_.words;
    const bool lower = ended_ == Outcome::rejected && outcome == Outcome::rejected &&
                       static_cast<std::uint32_t>(rank) < words.rank;
    if (ended_ == Outcome::ok || lower || outcome > Outcome::rejected) {
      ended_ = outcome;
      words.rank = static_cast<std::uint32_t>(rank);
      words.reject = static_cast<std::uint32_t>(reject);
      words.step = step_;
      words.outcome = static_cast<std::uint32_t>(outcome);
    }
    return false;
  }

 private:
  std::uint64_t parity() const { return step_ & 1; }

  ControlBlock& control_;
  Waiter waiter_;
  std::uint64_t step_;
  std::uint64_t epoch_ = 0;
  Outcome ended_ = Outcome::ok;
};

}  // namespace librun::host
