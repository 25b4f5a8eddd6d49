// SPDX-License-Identifier: Apache-2.0
#include "common/parse.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <stdexcept>
#include <utility>

#include "librun/librun.h"

namespace car {
namespace {

template <class Value, class Name>
std::vector<Value> parse_names(const std::string& text, const char* what, int first, int count,
                               Name name,
                               const std::vector<std::pair<std::string, Value>>& aliases = {}) {
  std::vector<Value> all;
  std::string known;
  for (int i = first; i < count; ++i) {
    const auto value = static_cast<Value>(i);
    if (text == name(value)) return {value};
    all.push_back(value);
    known += std::string(name(value)) + ", ";
  }
  if (text == "all") return all;
  for (const auto& [alias, value] : aliases)
    if (text == alias) return {value};
  known += "all";
  for (const auto& alias : aliases)
    known += std::string(&alias == &*aliases.begin() ? "; or " : ", ") + alias.first;
  throw std::invalid_argument(fmt::format("\"{}\" is no {}: {}", text, what, known));
}

}  // namespace

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  const auto fail = [&](const char* why) {
    throw std::invalid_argument(fmt::format("\"{}\" {}: write 8, 64K, 1M or 2G", text, why));
  };
  if (error == std::errc::result_out_of_range) fail("is too large");
  if (error != std::errc{}) fail("is no size");
  int shift = 0;
  if (!unit.empty()) {
    const auto at = std::string("BKMGT").find(static_cast<char>(std::toupper(unit[0])));
    const std::string tail = unit.substr(1);
    const bool plain_bytes = at == 0 && tail.empty();
    if (at == std::string::npos || (!plain_bytes && !(tail.empty() || tail == "B" || tail == "iB")))
      fail("has an unknown unit");
    shift = static_cast<int>(10 * at);
  }
  if (value > std::numeric_limits<std::uint64_t>::max() >> shift) fail("is too large");
  return value << shift;
}

std::int64_t parse_int(const std::string& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < low || value > high)
    throw std::invalid_argument(
        fmt::format("\"{}\" is no whole number from {} to {}", text, low, high));
  return value;
}

std::vector<librun_dtype_t> parse_dtypes(const std::string& text) {
  return parse_names<librun_dtype_t>(text, "type", 0, LIBRUN_DTYPE_COUNT, librun_dtype_name,
                                     {{"half", LIBRUN_FLOAT16},
                                      {"float", LIBRUN_FLOAT32},
                                      {"double", LIBRUN_FLOAT64},
                                      {"bf16", LIBRUN_BFLOAT16},
                                      {"fp16", LIBRUN_FLOAT16},
                                      {"fp32", LIBRUN_FLOAT32},
                                      {"fp64", LIBRUN_FLOAT64}});
}

std::vector<librun_op_t> parse_ops(const std::string& text) {
  return parse_names<librun_op_t>(text, "operation", 0, LIBRUN_OP_COUNT, librun_op_name);
}

std::vector<librun_algo_t> parse_algos(const std::string& text) {
  if (text == "auto") return {LIBRUN_ALGO_AUTO};
  return parse_names<librun_algo_t>(text, "algorithm", 1, LIBRUN_ALGO_COUNT, librun_algo_name);
}

librun_device_t parse_device(const std::string& text) {
  if (text == "auto") return LIBRUN_DEVICE_AUTO;
  if (text == "host") return LIBRUN_DEVICE_HOST;
  if (text == "cuda") return LIBRUN_DEVICE_CUDA;
  throw std::invalid_argument(fmt::format("\"{}\" is no device: auto, host, cuda", text));
}

std::string size_text(std::uint64_t size_bytes) {
  int unit = 0;
  while (unit < 4 && size_bytes != 0 && size_bytes % 1024 == 0) {
    size_bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(size_bytes) : fmt::format("{}{}", size_bytes, " KMGT"[unit]);
}

}  // namespace car
