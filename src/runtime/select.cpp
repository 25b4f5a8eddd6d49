// SPDX-License-Identifier: Apache-2.0
#include "runtime/select.hpp"

#include "kernels/dtype.hpp"

namespace librun {

Selector::Selector(const TuningTables* own, TuningKey key) : key_(std::move(key)) {
  for (int dtype = 0; dtype < LIBRUN_DTYPE_COUNT; ++dtype)
    for (const bool registered : {false, true}) {
      TuningKey wanted = key_;
      wanted.registered = registered;
      wanted.element_bytes = element_bytes(static_cast<librun_dtype_t>(dtype));
      const TuningSteps* steps = own ? own->find(wanted) : nullptr;
      if (!steps) steps = TuningTables::shipped().find(wanted);
      steps_[static_cast<std::size_t>(dtype)][registered] = *steps;
    }
}

}  // namespace librun
