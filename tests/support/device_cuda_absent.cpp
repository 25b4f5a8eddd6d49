// SPDX-License-Identifier: Apache-2.0
// The CUDA half of device.cpp for builds without CUDA.
#include "support/device_cuda.hpp"

namespace librun_test::cuda {

std::string use_gpu_of(int) { return "librun was built without CUDA"; }

void* allocate_pinned(std::size_t) { return nullptr; }
void free_pinned(void*, std::size_t) noexcept {}
void* allocate(std::size_t) { return nullptr; }
void free(void*, std::size_t) noexcept {}
void copy(void*, const void*, std::size_t) {}
bool reserve_addresses(void*, std::size_t) { return false; }
void free_addresses(void*, std::size_t) noexcept {}
void* create_stream() { return nullptr; }
void destroy_stream(void*) noexcept {}

}  // namespace librun_test::cuda
