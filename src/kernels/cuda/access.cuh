// SPDX-License-Identifier: Apache-2.0
// Loads and stores between GPUs, in the words of the PTX memory model.
#pragma once

#include <cstdint>

namespace librun::cuda {

/// 16 bytes that arrive whole: one scalar access of 128 bits, relaxed at system scope.
__device__ inline void store_line(void* to, uint4 line) {
  const std::uint64_t low = line.x | static_cast<std::uint64_t>(line.y) << 32;
  const std::uint64_t high = line.z | static_cast<std::uint64_t>(line.w) << 32;
  asm volatile(
      "{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.sys.global.b128 [%0], t; }" ::"l"(to),
      "l"(low), "l"(high)
      : "memory");
}
__device__ inline uint4 load_line(const void* from) {
  std::uint64_t low;
  std::uint64_t high;
  asm volatile("{ .reg .b128 t; ld.relaxed.sys.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
  return make_uint4(static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32));
}

/// Everything that the block has written before a barrier is visible to who acquires the flag.
__device__ inline void store_release(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline std::uint32_t load_acquire(const std::uint32_t* from) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
/// Of memory that the host or a peer may change meanwhile.
__device__ inline std::uint32_t load_relaxed(const std::uint32_t* from) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// The compiler takes it as a new value: what comes after cannot be computed another way.
__device__ inline std::uint64_t settle(std::uint32_t& value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ inline std::uint64_t settle(std::uint64_t& value) {
  asm volatile("" : "+l"(value));
  return value;
}
/// @param address of global memory
template <class T>
__device__ inline std::uint64_t settle(T*& address) {
  asm volatile("" : "+l"(address));
  __builtin_assume(__isGlobal(address));
  return reinterpret_cast<std::uint64_t>(address);
}

/// Programmatic dependent launch: what the launch in front wrote is visible after it, and the one
/// behind may come now. Not earlier: a whole chain of launches would then wait on the device at the
/// same time, and where ranks share it, keep out the ones that it waits for.
/// @param settled a sum of what shall be known before, where it costs nothing; never zero, as some
///                of it are addresses. The assembler moves arithmetic down past a wait that does
///                not depend on it.
__device__ inline void wait_for_predecessor(std::uint64_t settled) {
#if __CUDA_ARCH__ >= 900
  if (settled != 0) asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

}  // namespace librun::cuda
