// SPDX-License-Identifier: Apache-2.0
// Memory in use on the GPUs, asked without taking any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace car {

struct GpuUsage {
  std::string uuid;
  std::uint64_t used_bytes;
};

/// Through NVML, which is looked up at run time.
class GpuUsageMeter {
 public:
  GpuUsageMeter();
  ~GpuUsageMeter();
  GpuUsageMeter(const GpuUsageMeter&) = delete;
  GpuUsageMeter& operator=(const GpuUsageMeter&) = delete;

  /// Of all GPUs of the machine; empty where NVML is not to be had.
  std::vector<GpuUsage> read() const;

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
};

/// "12 MiB, 0 MiB"; "n/a" when empty.
std::string describe(const std::vector<GpuUsage>& usage);

}  // namespace car
