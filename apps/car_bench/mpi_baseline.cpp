// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce on memory of the host; the data of a GPU goes there and back, which is timed too.
#include <mpi.h>

#include "car_bench/baseline.hpp"
#include "car_bench/result.hpp"

namespace car::bench {
namespace {

MPI_Datatype mpi_type(librun_dtype_t dtype) {
  switch (dtype) {
    // MPI has no 16-bit floats: the same count of floats is what a code without librun would send.
    case LIBRUN_FLOAT16:
    case LIBRUN_BFLOAT16:
    case LIBRUN_FLOAT32:
      return MPI_FLOAT;
    case LIBRUN_FLOAT64:
      return MPI_DOUBLE;
    case LIBRUN_INT8:
      return MPI_INT8_T;
    case LIBRUN_UINT8:
      return MPI_UINT8_T;
    case LIBRUN_INT32:
      return MPI_INT32_T;
    case LIBRUN_UINT32:
      return MPI_UINT32_T;
    case LIBRUN_INT64:
      return MPI_INT64_T;
    default:
      return MPI_UINT64_T;
  }
}

MPI_Op mpi_op(librun_op_t op) {
  static const MPI_Op kOps[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  return kOps[op];
}

class MpiBaseline final : public Baseline {
 public:
  explicit MpiBaseline(int aggregate) : aggregate_(aggregate) {}

  bool takes(const Work& work) const override {
    return work.count <= static_cast<std::size_t>(1) << 30;
  }

  Way way(const Work& work, librun::Communicator& /*comm*/) override {
    // 16-bit floats go as floats, twice the bytes: more than the buffers hold.
    const bool widened = is_half(work.dtype);
    const bool staged = work.device.is_asynchronous();
    std::byte* send = work.send;
    std::byte* recv = work.recv;
    std::shared_ptr<DeviceBuffer> room;
    if (widened || staged) {
      const std::size_t each_bytes = widened ? work.count * sizeof(float) : work.size_bytes;
      room = std::make_shared<DeviceBuffer>(work.device, 2 * each_bytes, Place::pinned);
      work.device.fill(room->data(), std::byte{0}, 2 * each_bytes);
      send = room->data();
      recv = send + each_bytes;
    }
    Way way;
    if (!staged) way.input = {send, widened ? work.count * sizeof(float) : work.size_bytes};
    way.call = [this, work, room, staged, send, recv] {
      for (int i = 0; i < aggregate_; ++i) {
        if (staged) work.device.copy(send, work.send, work.size_bytes);
        MPI_Allreduce(send, recv, static_cast<int>(work.count), mpi_type(work.dtype),
                      mpi_op(work.op), MPI_COMM_WORLD);
        if (staged) work.device.copy(work.recv, recv, work.size_bytes);
      }
    };
    way.calls_each = aggregate_;
    return way;
  }

 private:
  int aggregate_;
};

}  // namespace

std::unique_ptr<Baseline> make_mpi_baseline(const Options& options) {
  return std::make_unique<MpiBaseline>(options.aggregate);
}

}  // namespace car::bench
