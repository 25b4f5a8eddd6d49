// SPDX-License-Identifier: Apache-2.0
// Texts of the command line to values, strictly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "librun/types.h"

namespace car {

/// "8", "64K", "1M", "2G", "1KiB", "1MB": binary units. @throws std::invalid_argument
std::uint64_t parse_size(const std::string& text);
/// A whole number from `low` to `high`. @throws std::invalid_argument
std::int64_t parse_int(const std::string& text, std::int64_t low, std::int64_t high);

/// One type, or all of them for "all"; knows nccl-tests' names too (float, half, double).
/// @throws std::invalid_argument that lists the names
std::vector<librun_dtype_t> parse_dtypes(const std::string& text);
std::vector<librun_op_t> parse_ops(const std::string& text);
/// "all" means every algorithm but auto.
std::vector<librun_algo_t> parse_algos(const std::string& text);
librun_device_t parse_device(const std::string& text);

/// "1K", "64K", "3M", or plain bytes when nothing divides.
std::string size_text(std::uint64_t size_bytes);

}  // namespace car
