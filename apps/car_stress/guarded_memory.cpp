// SPDX-License-Identifier: Apache-2.0
#include "car_stress/guarded_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace car::stress {
namespace {

constexpr std::size_t kGuardBytes = 128;
constexpr std::byte kGuard{0x5c};
constexpr std::byte kPoison{0xff};
constexpr std::size_t kPageBytes = 4096;

bool all_equal(const std::byte* from, std::size_t size_bytes, std::byte value) {
  if (size_bytes == 0) return true;
  return from[0] == value && std::memcmp(from, from + 1, size_bytes - 1) == 0;
}

}  // namespace

GuardedRange::GuardedRange(std::byte* memory, std::size_t offset_elements,
                           std::size_t element_bytes, std::size_t size_bytes)
    : data_(memory + kGuardBytes + offset_elements * element_bytes), size_bytes_(size_bytes) {
  std::memset(data_ - kGuardBytes, static_cast<int>(kGuard), kGuardBytes);
  std::memset(data_ + size_bytes_, static_cast<int>(kGuard), kGuardBytes);
  poison();
}

void GuardedRange::poison() const { std::memset(data_, static_cast<int>(kPoison), size_bytes_); }

bool GuardedRange::is_poison() const { return all_equal(data_, size_bytes_, kPoison); }

bool GuardedRange::guards_intact() const {
  return all_equal(data_ - kGuardBytes, kGuardBytes, kGuard) &&
         all_equal(data_ + size_bytes_, kGuardBytes, kGuard);
}

void PlainMemory::Free::operator()(std::byte* memory) const { std::free(memory); }

PlainMemory::PlainMemory(std::size_t size_bytes) {
  const std::size_t rounded = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, rounded)));
  if (!data_) throw std::bad_alloc();
}

}  // namespace car::stress
