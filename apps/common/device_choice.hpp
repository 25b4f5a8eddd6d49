// SPDX-License-Identifier: Apache-2.0
// Which device this rank's data is on.
#pragma once

#include <mpi.h>

#include <memory>

#include "common/device_memory.hpp"
#include "librun/librun.hpp"

namespace car {

struct ChosenDevice {
  std::unique_ptr<Device> memory;
  /// What librun is told. It differs from the memory's kind where librun will refuse.
  librun_device_t kind = LIBRUN_DEVICE_UNSET;

  /// Its settings, for a communicator on this device.
  librun::Config config() const;
};

/// What was asked for, else LIBRUN_DEVICE, else CUDA where it works. On CUDA this rank takes the
/// GPU of its rank on this machine, modulo their number, and makes it current. Collective.
/// @throws std::runtime_error when that GPU cannot be used
ChosenDevice choose_device(librun_device_t asked, MPI_Comm comm);

}  // namespace car
