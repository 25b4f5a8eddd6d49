// SPDX-License-Identifier: Apache-2.0
// The table on rank 0's standard output, in nccl-tests' columns or OSU's.
#pragma once

#include <string>
#include <vector>

#include "car_bench/options.hpp"
#include "car_bench/report.hpp"
#include "car_bench/result.hpp"

namespace car::bench {

std::string header_text(const Options& options, const RunRecord& record);
std::string row_text(const Options& options, const Result& result, int world);
std::string footer_text(const std::vector<Result>& results, int world);
std::string suspend_text(const std::vector<PhaseSamples>& phases);

std::uint64_t total_wrong(const std::vector<Result>& results);
/// Mean over sizes and both places, in GB/s.
double average_busbw(const std::vector<Result>& results, int world);

/// nccl-tests' name of a type: "float" for float32.
std::string type_text(librun_dtype_t dtype);

}  // namespace car::bench
