// SPDX-License-Identifier: Apache-2.0
#include "car_stress/group.hpp"

#include <fmt/format.h>

#include <numeric>

namespace car::stress {
namespace {

std::vector<int> ranks_in_the_run(MPI_Comm members, int world) {
  std::vector<int> ranks(static_cast<std::size_t>(world));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> run_ranks(ranks.size());
  MPI_Group group{};
  MPI_Group run{};
  MPI_Comm_group(members, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &run);
  MPI_Group_translate_ranks(group, world, ranks.data(), run, run_ranks.data());
  MPI_Group_free(&group);
  MPI_Group_free(&run);
  return run_ranks;
}

}  // namespace

Group::Group(int index, const GroupPlan& plan, const MpiGroups& mpi, const ChosenDevice& device,
             Watchdog& watchdog)
    : plan_(plan),
      name_(fmt::format("comm {} ({})", index, describe(plan))),
      device_(*device.memory),
      watchdog_(watchdog) {
  const MPI_Comm members = mpi.of(plan.members);
  if (members == MPI_COMM_NULL) return;
  MPI_Comm_rank(members, &rank_);
  MPI_Comm_size(members, &world_);
  run_ranks_ = ranks_in_the_run(members, world_);
  stream_ = make_stream(device_);
  librun::Config config = device.config();
  config.algo = plan.algo;
  comm_ = librun::Communicator(members, config);
  watchdog_.watch(name_, comm_.get());
}

Group::~Group() { watchdog_.forget(name_); }

int Group::run_rank(int rank) const {
  return rank >= 0 && rank < world_ ? run_ranks_[static_cast<std::size_t>(rank)] : -1;
}

void Group::register_buffers(Group& lender, std::size_t each_bytes, Random random) {
  if (is_member())
    registered_ =
        std::make_unique<RegisteredPair>(device_, comm_, lender.comm_, each_bytes, random);
}

void Group::drop_buffers() {
  if (!registered_) return;
  registered_->unregister();
  registered_->free_memory();
  registered_.reset();
}

void Group::close() {
  drop_buffers();
  if (!is_member()) return;
  comm_.check();  // to close what has failed is local, and no error
  comm_.close();
}

}  // namespace car::stress
