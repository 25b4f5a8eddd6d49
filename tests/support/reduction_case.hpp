// SPDX-License-Identifier: Apache-2.0
// One all-reduce with guard words and offsets, checked bit by bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/job.hpp"

namespace librun_test {

enum class Place { out_of_place, in_place, mixed };  // mixed: in place on odd ranks only

struct ReductionCase {
  librun_dtype_t dtype = LIBRUN_FLOAT32;
  librun_op_t op = LIBRUN_SUM;
  std::size_t count = 1000;
  Place place = Place::out_of_place;
  Fill fill = Fill::random;
  std::uint64_t k = 0;  ///< number of the call: chooses the data
  int shift = 0;        ///< chooses the offsets, which differ from rank to rank
};

std::string describe(const ReductionCase& test);

/// Memory of librun_malloc that is registered, for zero_copy. Collective at both ends.
class RegisteredMemory {
 public:
  RegisteredMemory(librun_comm_t comm, std::size_t size_bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  librun_buffer_t buffer() const { return buffer_; }

 private:
  librun_comm_t comm_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_;
  librun_buffer_t buffer_ = nullptr;
};

/// Runs the case on buffers of its own, or inside `memory`. "" when result, input and guards are
/// right. Collective. @param hash mixes in the bits of the result
std::string run_case(librun_comm_t comm, const ReductionCase& test,
                     const RegisteredMemory* memory = nullptr, std::uint64_t* hash = nullptr);

}  // namespace librun_test
