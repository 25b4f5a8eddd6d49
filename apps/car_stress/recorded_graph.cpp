// SPDX-License-Identifier: Apache-2.0
#include "car_stress/recorded_graph.hpp"

#include <fmt/format.h>

#include "common/verify.hpp"

namespace car::stress {

RecordedGraph::RecordedGraph(int index, Group& group, const GraphPlan& plan, Journal& journal)
    : name_(fmt::format("graph {} on {}", index, group.name())),
      group_(group),
      plan_(plan),
      journal_(journal) {
  if (!group.is_member()) return;
  journal_.doing("capture of " + name_);
  std::size_t room = 0;
  for (const CallPlan& call : plan.calls) room += 2 * room_of(call);
  const bool registered =
      group.plan().algo == LIBRUN_ALGO_ZERO_COPY || plan.calls.front().seed % 2 == 0;
  allocate(room, registered);

  std::byte* next = memory_;
  for (const CallPlan& call : plan_.calls) {
    Random random(call.seed, 1, static_cast<std::uint64_t>(group.rank()));
    buffers_.push_back(place_buffers(group.device(), call, next, next + room_of(call), random));
    next += 2 * room_of(call);
  }
  group.comm().begin_graph(group.stream());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const CallPlan& call = plan_.calls[i];
    group.comm().all_reduce(buffers_[i].send(), buffers_[i].recv(), call.count, call.dtype, call.op,
                            group.stream());
  }
  graph_ = group.comm().end_graph(group.stream());
}

void RecordedGraph::allocate(std::size_t size_bytes, bool registered) {
  if (!registered) {
    plain_ = DeviceBuffer(group_.device(), size_bytes);
    memory_ = plain_.data();
    return;
  }
  memory_ = static_cast<std::byte*>(group_.comm().allocate(size_bytes));
  registration_ = group_.comm().register_buffer(memory_, size_bytes);
}

std::uint64_t RecordedGraph::seed_of(const CallPlan& call, std::uint64_t seed) const {
  return mix64(call.seed ^ seed);
}

void RecordedGraph::launch(std::uint64_t seed) {
  if (!group_.is_member()) return;
  journal_.doing("launch of " + name_);
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    fill_buffers(buffers_[i], plan_.calls[i], group_, seed_of(plan_.calls[i], seed));
  graph_.launch(group_.stream());
  group_.comm().synchronize(group_.stream());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    journal_.doing(fmt::format("{}: call {}: {}", name_, i, describe(plan_.calls[i])));
    check_result(buffers_[i], plan_.calls[i], group_, seed_of(plan_.calls[i], seed), journal_);
  }
}

void RecordedGraph::expect_refusal() {
  if (!group_.is_member()) return;
  journal_.doing("launch of " + name_ + " while suspended");
  for (const CallBuffers& buffers : buffers_) buffers.output.poison();
  try {
    graph_.launch(group_.stream());
    journal_.wrong("the launch was not refused");
  } catch (const librun::Error& error) {
    if (error.code() != LIBRUN_INVALID_STATE) throw;
  }
  for (const CallBuffers& buffers : buffers_)
    if (!buffers.output.is_poison()) journal_.wrong("the refused launch wrote to an output");
}

void RecordedGraph::close() {
  graph_ = librun::Graph{};
  if (!registration_) return;
  group_.comm().unregister_buffer(registration_);
  group_.comm().deallocate(memory_);
  registration_ = {};
}

}  // namespace car::stress
