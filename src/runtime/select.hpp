// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call takes: a pure function of what all ranks know alike.
#pragma once

#include <cstddef>

#include "librun/types.h"

namespace librun {

struct Selection {
  librun_algo_t forced = LIBRUN_ALGO_AUTO;
  int world = 1;
  librun_device_t device = LIBRUN_DEVICE_HOST;
  bool can_zero_copy = false;  ///< the communicator has registered buffers that peers can map
};

/// @return never LIBRUN_ALGO_AUTO
librun_algo_t select_algo(const Selection& selection, std::size_t size_bytes);

}  // namespace librun
