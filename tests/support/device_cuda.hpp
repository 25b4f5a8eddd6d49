// SPDX-License-Identifier: Apache-2.0
// What device.cpp needs of CUDA; device_cuda_absent.cpp stands in where there is no toolkit.
#pragma once

#include <cstddef>
#include <string>

namespace librun_test::cuda {

/// Makes GPU `rank` modulo their number current. @return why it cannot be, "" when it can
std::string use_gpu_of(int rank);

/// Pinned host memory that kernels can use at the same address.
void* allocate_pinned(std::size_t size_bytes);
void free_pinned(void* memory, std::size_t size_bytes) noexcept;
void* allocate(std::size_t size_bytes);
void free(void* memory, std::size_t size_bytes) noexcept;
/// In either direction; returns when it is done.
void copy(void* to, const void* from, std::size_t size_bytes);

bool reserve_addresses(void* address, std::size_t size_bytes);
void free_addresses(void* address, std::size_t size_bytes) noexcept;

void* create_stream();
void destroy_stream(void* stream) noexcept;

}  // namespace librun_test::cuda
