// SPDX-License-Identifier: Apache-2.0
// The path of an all-reduce: arguments, choice, launch, and what the launch reports.
#include <fmt/format.h>

#include <cstring>

#include "kernels/dtype.hpp"
#include "librun/librun.h"
#include "runtime/communicator.hpp"

namespace librun {
namespace {

const char* reject_text(Reject reject) {
  switch (reject) {
    case Reject::null_pointer:
      return "a buffer is null";
    case Reject::misaligned:
      return "a buffer is not aligned to its type";
    case Reject::overlap:
      return "send and recv overlap without being equal";
    case Reject::bad_count:
      return "the count is above 2^40";
    case Reject::bad_dtype:
      return "the type does not exist";
    case Reject::bad_op:
      return "the operation does not exist";
    case Reject::not_registered:
      return "zero_copy was forced and send is not registered";
    case Reject::injected:
      return "a fault was injected";
    case Reject::none:
      break;
  }
  return "?";
}

const char* reject_hint(Reject reject) {
  switch (reject) {
    case Reject::overlap:
      return "pass equal pointers to work in place.";
    case Reject::not_registered:
      return "register it with librun_register, or use --algo auto.";
    default:
      return "correct the arguments on that rank; the communicator stays usable.";
  }
}

Body body_of(librun_algo_t algo) {
  switch (algo) {
    case LIBRUN_ALGO_LL:
      return Body::ll;
    case LIBRUN_ALGO_ONE_SHOT:
      return Body::one_shot;
    case LIBRUN_ALGO_ZERO_COPY:
      return Body::zero_copy;
    case LIBRUN_ALGO_STEPPED:
      return Body::stage_publish;
    default:
      return Body::two_shot;
  }
}

std::string describe(const Announcement& call) {
  return fmt::format("count {} {} {} {} call {}", call.count,
                     librun_dtype_name(static_cast<librun_dtype_t>(call.dtype)),
                     librun_op_name(static_cast<librun_op_t>(call.op)),
                     librun_algo_name(static_cast<librun_algo_t>(call.algo)), call.call);
}

}  // namespace

Reject Communicator::inspect(const CallArguments& call) const {
  const std::size_t element = element_bytes(call.dtype);
  if (element == 0) return Reject::bad_dtype;
  if (call.op < 0 || call.op >= LIBRUN_OP_COUNT) return Reject::bad_op;
  if (call.count > LIBRUN_MAX_COUNT) return Reject::bad_count;
  if (call.count == 0) return Reject::none;
  if (!call.send || !call.recv) return Reject::null_pointer;
  const auto send = reinterpret_cast<std::uintptr_t>(call.send);
  const auto recv = reinterpret_cast<std::uintptr_t>(call.recv);
  if (send % element != 0 || recv % element != 0) return Reject::misaligned;
  const std::size_t size_bytes = call.count * element;
  if (send + size_bytes < send || recv + size_bytes < recv) return Reject::bad_count;
  if (send != recv && send < recv + size_bytes && recv < send + size_bytes) return Reject::overlap;
  return Reject::none;
}

librun_algo_t Communicator::algo_for(std::size_t size_bytes, librun_dtype_t dtype) const {
  if (settings_.algo != LIBRUN_ALGO_AUTO) return settings_.algo;
  return selector_->select(size_bytes, dtype, registry_.any_mapped()).algo;
}

librun_plan_t Communicator::plan(std::size_t count, librun_dtype_t dtype, librun_op_t op) {
  const auto lock = enter(Call::plan);
  const Reject reject = inspect({nullptr, nullptr, count, dtype, op});
  if (reject != Reject::none && reject != Reject::null_pointer)
    throw Error(LIBRUN_INVALID_ARGUMENT, rank(), fmt::format("{}: {}.", who(), reject_text(reject)),
                reject_hint(reject));
  AllReduceArgs args{};
  args.control = control_.get();
  args.count = count;
  args.dtype = dtype;
  args.op = op;
  const librun_algo_t algo = algo_for(count * element_bytes(dtype), dtype);
  args.body = body_of(algo);
  const LaunchGrid grid = device_->grid_of(args);
  librun_plan_t plan{};
  plan.algo = algo;
  plan.blocks = static_cast<int>(grid.n_blocks);
  plan.threads = static_cast<int>(grid.n_threads);
  plan.tuned =
      settings_.algo == LIBRUN_ALGO_AUTO &&
      selector_->select(count * element_bytes(dtype), dtype, registry_.any_mapped()).by_user;
  plan.shared = selector_->key().shared;
  selector_->key().device.copy(plan.device, sizeof(plan.device) - 1);
  return plan;
}

AllReduceArgs Communicator::make_args(const CallArguments& call) const {
  AllReduceArgs args{};
  args.control = control_.get();
  args.send = static_cast<const std::byte*>(call.send);
  args.recv = static_cast<std::byte*>(call.recv);
  args.count = call.count;
  args.dtype = call.dtype;
  args.op = call.op;
  args.check = settings_.check;
  args.reject = inspect(call);
  args.send_slot = args.recv_slot = -1;
  // Refused or not, stepped meets its peers in agreements: this must not depend on the arguments.
  if (settings_.algo == LIBRUN_ALGO_STEPPED) args.body = Body::stage_publish;
  if (settings_.algo == LIBRUN_ALGO_ZERO_COPY) args.body = Body::zero_copy;
  if (args.reject != Reject::none) return args;

  const std::size_t size_bytes = call.count * element_bytes(call.dtype);
  const librun_algo_t algo = algo_for(size_bytes, call.dtype);
  args.algo = algo;
  args.body = body_of(algo);
  if (algo == LIBRUN_ALGO_ZERO_COPY) {
    args.send_slot = registry_.find_range(args.send, size_bytes);
    args.recv_slot = registry_.find_range(args.recv, size_bytes);
    if (args.send_slot >= 0) args.send_number = control_->slots[args.send_slot].number;
    if (args.recv_slot >= 0) args.recv_number = control_->slots[args.recv_slot].number;
    const bool forced = settings_.algo == LIBRUN_ALGO_ZERO_COPY;
    if (forced && args.send_slot < 0 && call.count > 0) args.reject = Reject::not_registered;
  }
  return args;
}

void Communicator::all_reduce(const CallArguments& call, void* stream) {
  const auto lock = enter(Call::all_reduce);
  const AllReduceArgs args = make_args(call);
  if (!capture_) return launch(args, stream);
  if (args.reject != Reject::none)
    throw Error(LIBRUN_INVALID_ARGUMENT, rank(),
                fmt::format("{}: {}.", who(), reject_text(args.reject)), reject_hint(args.reject));
  if (capture_->on_device && stream != capture_->stream)
    throw Error(LIBRUN_INVALID_ARGUMENT, rank(), who() + ": the open capture is on another stream.",
                "pass the stream of librun_graph_begin.");
  if (capture_->on_device) device_->launch(args, stream);
  capture_->recording.launches.push_back(args);
}

void Communicator::replay(const Recording& recording, void* stream) {
  const auto lock = enter(Call::graph_launch);
  if (!recording.of_device) {
    for (const AllReduceArgs& args : recording.launches) launch(args, stream);
    return;
  }
  calls_.fetch_add(recording.launches.size(), std::memory_order_relaxed);
  recording.of_device->launch(stream);
}

void Communicator::begin_capture(void* stream) {
  const auto lock = enter(Call::graph_begin);
  if (capture_)
    throw Error(LIBRUN_INVALID_STATE, rank(), who() + ": a capture is open already.",
                "call librun_graph_end first.");
  const bool baked = setting_value("LIBRUN_BAKED_POINTERS") == "1";
  Capture capture{{}, false, stream, {}};
  // The halves of stepped meet in agreements, which no device can record.
  if (settings_.algo != LIBRUN_ALGO_STEPPED && !device_info_.launches_wait) {
    const auto limit = deadline(-1);
    while (!(capture.counted = captures::open(captures::next_look(limit)))) {
      throw_if_failed();
      if (std::chrono::steady_clock::now() >= limit)
        throw Error(LIBRUN_TIMEOUT, rank(),
                    who() + ": another thread of this process waits for the device.",
                    "capture when its suspend, close, unregister or free has ended.");
    }
    throw_if_failed();
    capture.on_device = device_->begin_capture(stream, baked);
    if (!capture.on_device) capture.counted.reset();
  }
  has_baked_pointers_ = has_baked_pointers_ || (baked && capture.on_device);
  capture_.emplace(std::move(capture));
}

Recording Communicator::end_capture(void* stream) {
  const auto lock = enter(Call::graph_end);
  if (!capture_)
    throw Error(LIBRUN_INVALID_STATE, rank(), who() + ": no capture is open.",
                "call librun_graph_begin first.");
  Capture capture = std::move(*capture_);
  capture_.reset();
  if (capture.on_device) capture.recording.of_device = device_->end_capture(stream);
  return std::move(capture.recording);
}

/// The caller's stream must not stay in a capture that nobody will end.
void Communicator::drop_capture() noexcept {
  if (capture_ && capture_->on_device) {
    try {
      device_->end_capture(capture_->stream);
    } catch (const Error&) {
      // The stream is gone, or its capture has failed: there is nothing to end.
    }
  }
  capture_.reset();
}

void Communicator::launch(const AllReduceArgs& args, void* stream) {
  // Only calls write it, one at a time.
  const std::uint64_t number = calls_.load(std::memory_order_relaxed) + 1;
  calls_.store(number, std::memory_order_relaxed);
  words_->calls = number;
  if (args.body == Body::stage_publish) {
    words_->outcome = 0;
    return run_stepped(args, stream);
  }
  if (device_info_.launches_wait) {
    words_->outcome = 0;
    device_->launch(args, stream);
    return throw_outcome();
  }
  // The peers are asked only when the call starts with an announcement; else a bad one costs them
  // nothing.
  if (args.reject == Reject::none || args.check || args.body == Body::zero_copy)
    device_->launch(args, stream);
  if (args.reject != Reject::none)
    throw Error(LIBRUN_INVALID_ARGUMENT, rank(),
                fmt::format("all_reduce refused by rank {}: {}.", rank(), reject_text(args.reject)),
                reject_hint(args.reject));
}

// No launch waits here: the ranks meet in agreements instead, which also carry a refusal and the
// arguments to compare.
void Communicator::run_stepped(const AllReduceArgs& args, void* stream) {
  Phases phases(Request::all_reduce, exchange_, watch(),
                std::chrono::steady_clock::now() + settings_.call_timeout);
  const auto meet = [&](const char* name, auto&& work) {
    return guarded(Request::all_reduce, [&] {
      return phases.run(name, [&](Ballot& mine) {
        work();
        if (args.reject != Reject::none)
          throw Rejection(LIBRUN_INVALID_ARGUMENT, rank(),
                          fmt::format("{}.", reject_text(args.reject)), reject_hint(args.reject));
        mine.put(announcement_of(args, words_->calls));
      });
    });
  };
  std::vector<Announcement> calls;
  for (const Ballot& ballot : meet("arguments", [] {})) calls.push_back(ballot.get<Announcement>());
  for (std::size_t peer = 0; peer < calls.size(); ++peer)
    if (!same_call(calls[peer], calls[0])) throw_mismatch(calls, static_cast<std::uint32_t>(peer));
  const std::size_t element = element_bytes(args.dtype);
  const std::size_t chunk_count = control_->layout.chunk_bytes / element;
  for (std::size_t done = 0; done < args.count; done += chunk_count) {
    AllReduceArgs half = args;
    half.check = false;
    half.send += done * element;
    half.recv += done * element;
    half.count = std::min<std::size_t>(chunk_count, args.count - done);
    meet("published", [&] { run_half(half, stream, phases.work_deadline()); });
    half.body = Body::stage_reduce;
    meet("reduced", [&] { run_half(half, stream, phases.work_deadline()); });
  }
}

void Communicator::run_half(const AllReduceArgs& half, void* stream, ipc::Deadline deadline) {
  device_->launch(half, stream);
  if (!device_->drain(stream, deadline))
    throw Error(LIBRUN_TIMEOUT, rank(), who() + ": the stream did not finish in time.");
  throw_outcome();
}

/// Turns what the last launches reported into an error.
void Communicator::throw_outcome() {
  if (words_->outcome == 0 && words_->fatal == 0) return;
  const int culprit = late_rank();
  // A fatal one stays: nothing after it counts.
  const bool fatal = words_->fatal != 0;
  const std::uint64_t step = fatal ? words_->fatal_step : words_->step;
  switch (static_cast<Outcome>(fatal ? words_->fatal : std::exchange(words_->outcome, 0))) {
    case Outcome::ok:
      return;
    case Outcome::gate_closed:
    case Outcome::aborted:
      if (failure_.get()) throw_failure();
      throw Error(LIBRUN_INVALID_STATE, rank(), who() + ": the communicator is suspended.");
    case Outcome::rejected: {
      const auto reject = static_cast<Reject>(words_->reject);
      throw Error(LIBRUN_INVALID_ARGUMENT, culprit,
                  fmt::format("all_reduce refused by rank {}: {}.", culprit, reject_text(reject)),
                  reject_hint(reject));
    }
    case Outcome::mismatch: {
      std::vector<Announcement> calls(static_cast<std::size_t>(world()));
      for (std::size_t peer = 0; peer < calls.size(); ++peer)
        std::memcpy(&calls[peer], words_->announced[peer], sizeof(Announcement));
      throw_mismatch(calls, words_->rank);
    }
    case Outcome::timeout: {
      const Error error(
          LIBRUN_TIMEOUT, culprit,
          fmt::format("{}: all_reduce call {}: rank {} did not come within {} ms (step {}).", who(),
                      words_->calls, culprit, settings_.call_timeout.count(), step),
          "LIBRUN_CALL_TIMEOUT_MS sets how long to wait for a late rank.");
      fail(error, Request::all_reduce);
      throw_failure();
    }
    case Outcome::fault: {
      const Error error(LIBRUN_SYSTEM, rank(), who() + ": injected fault at after_read.");
      fail(error, Request::all_reduce);
      throw_failure();
    }
  }
}

void Communicator::throw_mismatch(std::vector<Announcement> calls, std::uint32_t odd_rank) const {
  std::string table;
  for (std::size_t peer = 0; peer < calls.size(); ++peer)
    table += fmt::format("{}rank {}: {}", peer ? "; " : "", peer, describe(calls[peer]));
  throw Error(LIBRUN_INVALID_ARGUMENT, static_cast<int>(odd_rank),
              "the ranks made different calls: " + table + ".",
              "pass the same count, type and operation on all ranks.");
}

}  // namespace librun
