// SPDX-License-Identifier: Apache-2.0
#include "car_stress/probes.hpp"

#include <fmt/format.h>

#include "car_stress/guarded_memory.hpp"
#include "librun/librun.h"

namespace car::stress {
namespace {

constexpr std::size_t kCount = 96;

struct Arguments {
  const void* send;
  void* recv;
  std::size_t count = kCount;
  librun_dtype_t dtype = LIBRUN_FLOAT64;
  librun_op_t op = LIBRUN_SUM;
};

void make_bad(Probe probe, std::byte* memory, Arguments& arguments) {
  switch (probe) {
    case Probe::null_pointer:
      arguments.recv = nullptr;
      break;
    case Probe::misaligned:
      arguments.recv = static_cast<std::byte*>(arguments.recv) + 2;
      break;
    case Probe::overlap:
      arguments.recv = memory + (kCount / 2) * sizeof(double);
      break;
    case Probe::huge_count:
      arguments.count = LIBRUN_MAX_COUNT + 1;
      break;
    case Probe::count_differs:
      arguments.count -= 1;
      break;
    case Probe::dtype_differs:
      arguments.dtype = LIBRUN_INT64;
      break;
    case Probe::op_differs:
      arguments.op = LIBRUN_MAX;
      break;
    case Probe::suspend_in_capture:
    case Probe::free_registered:
      break;
  }
}

/// True when the arguments are bad only by comparison, which one rank alone cannot have.
bool needs_company(Probe probe) {
  return probe == Probe::count_differs || probe == Probe::dtype_differs ||
         probe == Probe::op_differs;
}

/// Also waits: what the device finds is only known then.
librun_status_t all_reduce(Group& group, const Arguments& arguments) {
  const librun_status_t called =
      librun_all_reduce(group.comm().get(), arguments.send, arguments.recv, arguments.count,
                        arguments.dtype, arguments.op, group.stream());
  if (!group.device().is_asynchronous()) return called;
  const librun_status_t found = librun_synchronize(group.comm().get(), group.stream());
  return called == LIBRUN_OK ? found : called;
}

void probe_arguments(Group& group, const ProbePlan& plan, Journal& journal) {
  if (needs_company(plan.probe) && group.world() < 2) return;
  // One rank passes bad arguments, the others good ones; all must hear of it.
  const auto odd_rank = static_cast<int>(plan.seed % static_cast<std::uint64_t>(group.world()));
  RegisteredPair* const pair = group.registered();
  const DeviceBuffer own(group.device(), pair ? 1 : 4 * kCount * sizeof(double));
  std::byte* const memory = pair ? pair->input() : own.data();
  const GuardedRange whole(group.device(), memory, 0, sizeof(double), 3 * kCount * sizeof(double));
  Arguments arguments{whole.data(), whole.data() + 2 * kCount * sizeof(double)};
  if (group.rank() == odd_rank) make_bad(plan.probe, whole.data(), arguments);
  expect(LIBRUN_INVALID_ARGUMENT, all_reduce(group, arguments), "all_reduce", journal);
  if (!whole.is_poison() || !whole.guards_intact())
    journal.wrong("a refused call wrote to a buffer");
}

void probe_suspend_in_capture(Group& group, Journal& journal) {
  group.comm().begin_graph(group.stream());
  expect(LIBRUN_REJECTED, librun_suspend(group.comm().get(), -1), "suspend", journal);
  group.comm().end_graph(group.stream());
}

void probe_free_registered(Group& group, Journal& journal) {
  RegisteredPair* const pair = group.registered();
  if (!pair || !pair->library_memory()) return;
  expect(LIBRUN_REJECTED, librun_free(group.comm().get(), pair->library_memory()), "free", journal);
}

}  // namespace

void expect(librun_status_t wanted, librun_status_t got, const char* what, Journal& journal) {
  if (got == wanted) return;
  if (got != LIBRUN_OK && got != LIBRUN_ALREADY_THERE && got != LIBRUN_REJECTED &&
      got != LIBRUN_INVALID_ARGUMENT && got != LIBRUN_INVALID_STATE)
    librun::detail::throw_last_error(got);
  const bool failed = got != LIBRUN_OK && got != LIBRUN_ALREADY_THERE;
  journal.wrong(fmt::format("{} returned \"{}\" instead of \"{}\"{}{}", what,
                            librun_status_string(got), librun_status_string(wanted),
                            failed ? ": " : "", failed ? librun_last_error() : ""));
}

void run_probe(Group& group, const ProbePlan& plan, Journal& journal) {
  if (!group.is_member()) return;
  journal.doing(fmt::format("{} on {}", name_of(plan.probe), group.name()));
  switch (plan.probe) {
    case Probe::suspend_in_capture:
      return probe_suspend_in_capture(group, journal);
    case Probe::free_registered:
      return probe_free_registered(group, journal);
    default:
      return probe_arguments(group, plan, journal);
  }
}

void probe_suspended(Group& group, Journal& journal) {
  if (!group.is_member()) return;
  journal.doing("use of " + group.name() + " while suspended");
  const DeviceBuffer memory(group.device(), sizeof(double), Place::pinned);
  auto* const value = reinterpret_cast<double*>(memory.data());
  *value = 1.0;
  expect(LIBRUN_INVALID_STATE,
         librun_all_reduce(group.comm().get(), value, value, 1, LIBRUN_FLOAT64, LIBRUN_SUM,
                           group.stream()),
         "all_reduce", journal);
  if (*value != 1.0) journal.wrong("a refused call wrote to a buffer");
  librun_buffer_t buffer{};
  expect(LIBRUN_INVALID_STATE, librun_register(group.comm().get(), value, sizeof(double), &buffer),
         "register", journal);
}

}  // namespace car::stress
