// SPDX-License-Identifier: Apache-2.0
#include "common/device_choice.hpp"

#include <stdexcept>
#include <string>

#include "common/info.hpp"
#include "common/parse.hpp"
#include "librun/librun.h"

namespace car {
namespace {

/// Unset when the variable holds nonsense: librun says so better.
librun_device_t device_of_environment() {
  for (const auto& row : settings()) {
    if (row.at("name") != "LIBRUN_DEVICE") continue;
    try {
      return parse_device(row.at("value").get<std::string>());
    } catch (const std::invalid_argument&) {
      return LIBRUN_DEVICE_UNSET;
    }
  }
  return LIBRUN_DEVICE_AUTO;
}

int rank_on_this_machine(MPI_Comm comm) {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  int rank = 0;
  MPI_Comm_rank(machine, &rank);
  MPI_Comm_free(&machine);
  return rank;
}

}  // namespace

librun::Config ChosenDevice::config() const {
  librun::Config config;
  config.device = kind;
  if (memory) config.cuda_device = memory->ordinal();
  return config;
}

ChosenDevice choose_device(librun_device_t asked, MPI_Comm comm) {
  const int local_rank = rank_on_this_machine(comm);
  const librun_device_t wanted = asked == LIBRUN_DEVICE_UNSET ? device_of_environment() : asked;
  const int gpus =
      wanted == LIBRUN_DEVICE_CUDA || wanted == LIBRUN_DEVICE_AUTO ? cuda_device_count() : 0;
  if (gpus > 0) {
    // Current before librun looks at CUDA: otherwise every rank would open the first GPU as well.
    auto memory = make_cuda_device(local_rank % gpus);
    if (wanted == LIBRUN_DEVICE_CUDA ||
        librun_device_probe(LIBRUN_DEVICE_CUDA, nullptr, 0) == LIBRUN_OK)
      return {std::move(memory), LIBRUN_DEVICE_CUDA};
  }
  return {make_host_device(), wanted == LIBRUN_DEVICE_AUTO ? LIBRUN_DEVICE_HOST : wanted};
}

}  // namespace car
