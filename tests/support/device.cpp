// SPDX-License-Identifier: Apache-2.0
#include "support/device.hpp"

#include <mpi.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "support/device_cuda.hpp"

namespace librun_test {
namespace {

bool chose_cuda = false;

int rank_on_node() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

}  // namespace

bool on_cuda() { return chose_cuda; }

std::string choose_device() {
  const int rank = rank_on_node();
  const char* wanted = std::getenv("LIBRUN_DEVICE");
  if (!wanted || std::string(wanted) != "cuda") {
    ::setenv("LIBRUN_DEVICE", "host", 1);
    return "";
  }
  const std::string problem = cuda::use_gpu_of(rank);
  chose_cuda = problem.empty();
  return problem;
}

void* allocate_visible(std::size_t size_bytes) {
  return on_cuda() ? cuda::allocate_pinned(size_bytes) : ::operator new(size_bytes);
}

void free_visible(void* memory, std::size_t size_bytes) noexcept {
  on_cuda() ? cuda::free_pinned(memory, size_bytes) : ::operator delete(memory);
}

void* allocate_on_device(std::size_t size_bytes) {
  return on_cuda() ? cuda::allocate(size_bytes) : ::operator new(size_bytes);
}

void free_on_device(void* memory, std::size_t size_bytes) noexcept {
  on_cuda() ? cuda::free(memory, size_bytes) : ::operator delete(memory);
}

void copy_to_device(void* device, const void* host, std::size_t size_bytes) {
  if (on_cuda())
    cuda::copy(device, host, size_bytes);
  else if (size_bytes > 0)
    std::memcpy(device, host, size_bytes);
}

void copy_from_device(void* host, const void* device, std::size_t size_bytes) {
  copy_to_device(host, device, size_bytes);
}

bool occupy(void* address, std::size_t size_bytes) {
  if (on_cuda()) return cuda::reserve_addresses(address, size_bytes);
  return ::mmap(address, size_bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                0) != MAP_FAILED;
}

void vacate(void* address, std::size_t size_bytes) noexcept {
  on_cuda() ? cuda::free_addresses(address, size_bytes)
            : static_cast<void>(::munmap(address, size_bytes));
}

Stream::Stream() : handle_(on_cuda() ? cuda::create_stream() : nullptr) {}

Stream::~Stream() {
  if (handle_) cuda::destroy_stream(handle_);
}

}  // namespace librun_test
