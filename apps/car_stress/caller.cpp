// SPDX-License-Identifier: Apache-2.0
#include "car_stress/caller.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "common/verify.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

constexpr int kMaxOffset = 32;
constexpr int kMaxJitterUs = 50;

std::uint64_t hash_of(const GuardedRange& range) {
  return hash_bytes(range.contents().data(), range.size_bytes());
}

std::size_t size_bytes_of(const CallPlan& call) {
  return call.count * librun_dtype_bytes(call.dtype);
}

}  // namespace

std::size_t room_of(const CallPlan& call) {
  return (size_bytes_of(call) + GuardedRange::kSlackBytes + 63) / 64 * 64;
}

CallBuffers place_buffers(Device& device, const CallPlan& call, std::byte* input, std::byte* output,
                          Random& random) {
  const std::size_t element_bytes = librun_dtype_bytes(call.dtype);
  const auto place = [&](std::byte* memory) {
    const auto offset = static_cast<std::size_t>(random.below(kMaxOffset));
    return GuardedRange(device, memory, offset, element_bytes, size_bytes_of(call));
  };
  CallBuffers buffers;
  buffers.in_place = call.mixed_in_place ? random.one_in(2) : call.in_place;
  buffers.output = place(output);
  buffers.input = buffers.in_place ? buffers.output : place(input);
  return buffers;
}

void fill_buffers(const CallBuffers& buffers, const CallPlan& call, const Group& group,
                  std::uint64_t seed) {
  buffers.output.poison();
  buffers.input.write([&](std::byte* bytes) {
    fill_input(bytes, call.count, call.dtype, call.op, group.rank(), group.world(), seed);
  });
}

void check_result(const CallBuffers& buffers, const CallPlan& call, const Group& group,
                  std::uint64_t seed, Journal& journal) {
  std::size_t first = 0;
  const HostCopy result = buffers.output.contents();
  const std::uint64_t wrong =
      count_wrong(result.data(), call.count, call.dtype, call.op, group.world(), seed, &first);
  if (wrong != 0) {
    const std::byte* const got = result.data() + first * librun_dtype_bytes(call.dtype);
    journal.wrong(fmt::format("{} of {} elements are wrong, the first at {}: got {}, expected {}",
                              wrong, call.count, first, element_text(got, call.dtype),
                              expected_text(first, call.dtype, call.op, group.world(), seed)));
  }
  if (!buffers.output.guards_intact())
    journal.wrong("guard words around the output were overwritten");
  if (!buffers.in_place && !buffers.input.guards_intact())
    journal.wrong("guard words around the input were overwritten");
}

// Inputs out of memory of the host, which a GPU reads from afar: librun must not mind.
Caller::Caller(Device& device, std::size_t max_bytes, Journal& journal)
    : input_(device, max_bytes + GuardedRange::kSlackBytes, Place::pinned),
      output_(device, max_bytes + GuardedRange::kSlackBytes),
      journal_(journal) {}

CallBuffers Caller::choose_buffers(Group& group, const CallPlan& call, Random& random) {
  std::byte* input = input_.data();
  std::byte* output = output_.data();
  if (RegisteredPair* const pair = group.registered()) {
    // A forced zero_copy takes its input from registered memory only.
    const bool must = group.plan().algo == LIBRUN_ALGO_ZERO_COPY;
    const bool may_in_place = call.in_place || call.mixed_in_place;
    if (must || random.one_in(2)) input = pair->input();
    if ((must && may_in_place) || random.one_in(2)) output = pair->output();
  }
  return place_buffers(group.device(), call, input, output, random);
}

std::uint64_t Caller::run(Group& group, const CallPlan& call) {
  if (!group.is_member()) return 0;
  Random random(call.seed, 0, static_cast<std::uint64_t>(group.rank()));
  journal_.doing(fmt::format("call {} on {}: {}", ++calls_, group.name(), describe(call)));
  const CallBuffers buffers = choose_buffers(group, call, random);
  fill_buffers(buffers, call, group, call.seed);
  const bool watch_input = !buffers.in_place && !call.spoil_input;
  const std::uint64_t input_hash = watch_input ? hash_of(buffers.input) : 0;
  if (call.jitter)
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(kMaxJitterUs)));

  for (int i = 0; i < call.repeats; ++i) {
    if (i > 0) buffers.output.poison();
    group.comm().all_reduce(buffers.send(), buffers.recv(), call.count, call.dtype, call.op,
                            group.stream());
    group.comm().synchronize(group.stream());
    const bool is_last = i + 1 == call.repeats;
    if (is_last && call.spoil_input && !buffers.in_place) buffers.input.poison();
    check_result(buffers, call, group, call.seed, journal_);
  }
  if (watch_input && hash_of(buffers.input) != input_hash) journal_.wrong("the input was changed");
  return hash_of(buffers.output);
}

}  // namespace car::stress
