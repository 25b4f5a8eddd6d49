// SPDX-License-Identifier: Apache-2.0
// The model itself, against values worked out by hand.
#include "support/model.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/guarded_buffer.hpp"
#include "support/number_formats.hpp"

using namespace librun_test;

TEST_CASE("fp16 is read and written as IEEE says") {
  CHECK(Half::store(1.0) == 0x3c00);
  CHECK(Half::store(-2.0) == 0xc000);
  CHECK(Half::store(-0.0) == 0x8000);
  CHECK(Half::store(65504.0) == 0x7bff);
  CHECK(Half::store(65519.0) == 0x7bff);
  CHECK(Half::store(65520.0) == 0x7c00);  // a tie goes to even, which is infinity
  CHECK(Half::store(std::ldexp(1.0, -24)) == 0x0001);
  CHECK(Half::store(std::ldexp(1.0, -25)) == 0x0000);  // a tie again
  CHECK(Half::store(std::ldexp(1023.0, -24)) == 0x03ff);
  CHECK(Half::store(std::ldexp(1.0, -14)) == 0x0400);
  CHECK(Half::store(1.0 + std::ldexp(1.0, -11)) == 0x3c00);
  CHECK(Half::store(1.0 + 3 * std::ldexp(1.0, -11)) == 0x3c02);
  CHECK(std::isnan(Half::load(Half::store(std::nan("")))));
}

TEST_CASE("every 16-bit float survives a round trip") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto raw = static_cast<std::uint16_t>(bits);
    if (!std::isnan(Half::load(raw)) && Half::store(Half::load(raw)) != raw) FAIL("fp16 " << bits);
    if (!std::isnan(Bfloat::load(raw)) && Bfloat::store(Bfloat::load(raw)) != raw)
      FAIL("bf16 " << bits);
  }
  SUCCEED();
}

TEST_CASE("bf16 is the upper half of fp32, rounded") {
  CHECK(Bfloat::store(1.0) == 0x3f80);
  CHECK(Bfloat::store(256.0 + 1.0) == 0x4380);
  CHECK(Bfloat::store(256.0 + 3.0) == 0x4382);
  CHECK(Bfloat::store(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("a 16-bit sum is rounded once") {
  std::vector<Bytes> inputs{filled(LIBRUN_BFLOAT16, 1, 256)};
  for (int rank = 1; rank < 7; ++rank) inputs.push_back(filled(LIBRUN_BFLOAT16, 1, 1));
  CHECK(first_difference(LIBRUN_BFLOAT16, reduce(inputs, LIBRUN_BFLOAT16, LIBRUN_SUM).data(),
                         filled(LIBRUN_BFLOAT16, 1, 262)) == "");
}

TEST_CASE("integers wrap and NaN wins") {
  CHECK(combine<std::int8_t>(LIBRUN_SUM, 120, 100) == -36);
  CHECK(combine<std::int32_t>(LIBRUN_PROD, 65537, 65537) == 131073);
  CHECK(std::isnan(combine(LIBRUN_MAX, std::nanf(""), 1.0f)));
  CHECK(std::isnan(combine(LIBRUN_MIN, 1.0f, std::nanf(""))));
  CHECK(combine<std::int64_t>(LIBRUN_MIN, -1, 1) == -1);
}

TEST_CASE("a wrong element is found and named") {
  Bytes data = filled(LIBRUN_INT32, 9, 5);
  const Bytes expected = data;
  CHECK(first_difference(LIBRUN_INT32, data.data(), expected) == "");
  data[7 * 4] = std::byte{6};
  CHECK(first_difference(LIBRUN_INT32, data.data(), expected) ==
        "element 7 of 9: got 6, expected 5");
}

TEST_CASE("a write outside of a guarded buffer is found") {
  GuardedBuffer buffer(10, 3);
  CHECK(buffer.guards_intact());
  CHECK(buffer.untouched());
  buffer.data()[10] = std::byte{0};
  CHECK_FALSE(buffer.guards_intact());
  buffer.clear();
  buffer.data()[-1] = std::byte{0};
  CHECK_FALSE(buffer.guards_intact());
}
