// SPDX-License-Identifier: Apache-2.0
// The reductions: every instruction set gives the same bits as plain arithmetic.
#include "kernels/host/reduce.hpp"

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/dtype.hpp"
#include "librun/error.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
  for (const char* isa : {"plain", "avx2", "avx512"}) {
    try {
      host::select_reduce_table(isa);
      sets.emplace_back(isa);
    } catch (const Error&) {
      // This processor does not have it.
    }
  }
  return sets;
}

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size_bytes, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

bool is_nan(librun_dtype_t dtype, const std::byte* element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, element_bytes(dtype));
  switch (dtype) {
    case LIBRUN_FLOAT16:
      return (bits & 0x7fff) > 0x7c00;
    case LIBRUN_BFLOAT16:
      return (bits & 0x7fff) > 0x7f80;
    case LIBRUN_FLOAT32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case LIBRUN_FLOAT64:
      return (bits & ~(std::uint64_t{1} << 63)) > std::uint64_t{0x7ff} << 52;
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("all instruction sets agree, at every length and offset") {
  const auto sets = instruction_sets();
  constexpr int kSources = 5;
  for (int d = 0; d < LIBRUN_DTYPE_COUNT; ++d) {
    const auto dtype = static_cast<librun_dtype_t>(d);
    const std::size_t element = element_bytes(dtype);
    for (int op = 0; op < LIBRUN_OP_COUNT; ++op) {
      for (const std::size_t count : {1u, 3u, 7u, 15u, 16u, 17u, 63u, 64u, 65u, 257u, 1000u}) {
        std::vector<Bytes> inputs;
        std::vector<const void*> sources;
        for (unsigned r = 0; r < kSources; ++r)
          inputs.push_back(random_bytes(count * element + 8, r));
        for (const Bytes& input : inputs) sources.push_back(input.data() + element);
        Bytes first;
        for (const std::string& isa : sets) {
          Bytes result(count * element + 1, std::byte{0x5a});
          host::select_reduce_table(isa).fn[d][op](result.data(), sources.data(), kSources, count);
          CHECK(result.back() == std::byte{0x5a});
          if (first.empty()) first = result;
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < count; ++i) {
            const bool both_nan =
                is_nan(dtype, &first[i * element]) && is_nan(dtype, &result[i * element]);
            wrong += !both_nan && std::memcmp(&first[i * element], &result[i * element], element);
          }
          INFO(isa << " dtype " << d << " op " << op << " count " << count);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("half to float and back is the identity on every value") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (half & 0x7fffu) > 0x7c00u;
    const auto back = float_to_half(half_to_float(half));
    if (back != (nan ? (half | 0x200u) : half)) FAIL("half " << half << " gives " << back);
  }
}

TEST_CASE("float to half rounds to nearest even, as the hardware does") {
  CHECK(float_to_half(65519.0f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(float_to_half(1.0f + 3 * 0x1p-11f) == 0x3c02);
  CHECK(float_to_half(0x1p-25f) == 0x0000);
  CHECK(float_to_half(0x1.8p-25f) == 0x0001);
  CHECK(float_to_half(-0x1p-24f) == 0x8001);
}
