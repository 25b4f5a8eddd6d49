// SPDX-License-Identifier: Apache-2.0
#include "support/reduction_case.hpp"

#include <sstream>

#include "support/guarded_buffer.hpp"

namespace librun_test {
namespace {

constexpr std::size_t kOffsets[] = {0, 1, 2, 3, 5, 8};

/// In elements; differs between neighbouring ranks, and between send and recv.
std::size_t offset_of(const ReductionCase& test, int which) {
  const auto index = static_cast<std::size_t>(test.shift + rank() + 2 * which);
  return kOffsets[index % std::size(kOffsets)];
}

}  // namespace

std::string describe(const ReductionCase& test) {
  static const char* const kPlaces[] = {"out of place", "in place", "mixed"};
  std::ostringstream text;
  text << librun_dtype_name(test.dtype) << " " << librun_op_name(test.op) << ", " << test.count
       << " elements, " << kPlaces[static_cast<int>(test.place)] << ", shift " << test.shift
       << ", call " << test.k;
  return text.str();
}

RegisteredMemory::RegisteredMemory(librun_comm_t comm, std::size_t size_bytes)
    : comm_(comm), size_bytes_(size_bytes) {
  void* memory = nullptr;
  CHECK_OK(librun_malloc(comm_, size_bytes_, &memory));
  data_ = static_cast<std::byte*>(memory);
  CHECK_OK(librun_register(comm_, data_, size_bytes_, &buffer_));
}

RegisteredMemory::~RegisteredMemory() {
  CHECK_OK(librun_unregister(comm_, buffer_));
  CHECK_OK(librun_free(comm_, data_));
}

std::string run_case(librun_comm_t comm, const ReductionCase& test, const RegisteredMemory* memory,
                     std::uint64_t* hash) {
  const std::size_t element_bytes = librun_dtype_bytes(test.dtype);
  const std::size_t size_bytes = test.count * element_bytes;
  const std::size_t send_offset = offset_of(test, 0) * element_bytes;
  const std::size_t recv_offset = offset_of(test, 1) * element_bytes;

  // Both buffers at fixed places of registered memory: the same places on all ranks.
  const std::size_t half = memory ? memory->size_bytes() / 128 * 64 : 0;
  GuardedBuffer send = memory ? GuardedBuffer(memory->data(), size_bytes, send_offset)
                              : GuardedBuffer(size_bytes, send_offset);
  GuardedBuffer recv = memory ? GuardedBuffer(memory->data() + half, size_bytes, recv_offset)
                              : GuardedBuffer(size_bytes, recv_offset);
  const bool in_place =
      test.place == Place::in_place || (test.place == Place::mixed && rank() % 2 == 1);

  const Bytes input = make_input(test.fill, test.dtype, test.count, rank(), test.k);
  send.assign(input);
  GuardedBuffer& result = in_place ? send : recv;
  const librun_status_t status =
      all_reduce_and_wait(comm, send.data(), result.data(), test.count, test.dtype, test.op);
  if (status != LIBRUN_OK) return librun_status_string(status) + (": " + last_error());

  std::string difference = first_difference(
      test.dtype, result.fetch(),
      expected_result(test.fill, test.dtype, test.op, test.count, world(), test.k));
  if (difference.empty() && !send.guards_intact()) difference = "guard words of send changed";
  if (difference.empty() && !recv.guards_intact()) difference = "guard words of recv changed";
  if (difference.empty() && !in_place && !send.holds(input)) difference = "the input changed";
  if (difference.empty() && in_place && !recv.untouched()) difference = "an unused buffer changed";
  if (hash) *hash = *hash * 31 + hash_bytes(result.fetch(), size_bytes);
  return difference;
}

}  // namespace librun_test
