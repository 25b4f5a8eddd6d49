// SPDX-License-Identifier: Apache-2.0
// From a type, an operation and a world known at run time to template arguments.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/launch.hpp"

namespace librun::cuda {

template <class T, bool Sum, int World>
struct Variant {
  using Type = T;
  static constexpr bool kSum = Sum;
  static constexpr int kWorld = World;
};

template <class T, class Use>
cudaError_t with_world(int world, Use&& use) {
  switch (world) {
    case 2:
      return use(Variant<T, true, 2>{});
    case 4:
      return use(Variant<T, true, 4>{});
    case 8:
      return use(Variant<T, true, 8>{});
    default:
      return use(Variant<T, true, 0>{});
  }
}

/// The sum is what matters: it alone is unrolled. Signed and unsigned integers add alike.
template <class Use>
cudaError_t with_variant(librun_dtype_t dtype, librun_op_t op, int world, Use&& use) {
  const bool sum = op == LIBRUN_SUM;
  switch (dtype) {
    case LIBRUN_FLOAT16:
      return sum ? with_world<__half>(world, use) : use(Variant<__half, false, 0>{});
    case LIBRUN_BFLOAT16:
      return sum ? with_world<__nv_bfloat16>(world, use) : use(Variant<__nv_bfloat16, false, 0>{});
    case LIBRUN_FLOAT32:
      return sum ? with_world<float>(world, use) : use(Variant<float, false, 0>{});
    case LIBRUN_FLOAT64:
      return sum ? with_world<double>(world, use) : use(Variant<double, false, 0>{});
    case LIBRUN_INT8:
      return sum ? with_world<std::uint8_t>(world, use) : use(Variant<std::int8_t, false, 0>{});
    case LIBRUN_UINT8:
      return sum ? with_world<std::uint8_t>(world, use) : use(Variant<std::uint8_t, false, 0>{});
    case LIBRUN_INT32:
      return sum ? with_world<std::uint32_t>(world, use) : use(Variant<std::int32_t, false, 0>{});
    case LIBRUN_UINT32:
      return sum ? with_world<std::uint32_t>(world, use) : use(Variant<std::uint32_t, false, 0>{});
    case LIBRUN_INT64:
      return sum ? with_world<std::uint64_t>(world, use) : use(Variant<std::int64_t, false, 0>{});
    case LIBRUN_UINT64:
      return sum ? with_world<std::uint64_t>(world, use) : use(Variant<std::uint64_t, false, 0>{});
  }
  return cudaErrorInvalidValue;
}

}  // namespace librun::cuda
