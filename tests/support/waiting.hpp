// SPDX-License-Identifier: Apache-2.0
// Calls that return when their work is done, which is later than the call itself on a GPU.
#pragma once

#include "librun/librun.hpp"

namespace librun_test {

/// The first status that is not LIBRUN_OK.
inline librun_status_t all_reduce_and_wait(librun_comm_t comm, const void* send, void* recv,
                                           std::size_t count, librun_dtype_t dtype, librun_op_t op,
                                           void* stream = nullptr) {
  const librun_status_t status = librun_all_reduce(comm, send, recv, count, dtype, op, stream);
  return status == LIBRUN_OK ? librun_synchronize(comm, stream) : status;
}

template <class T>
void all_reduce_and_wait(librun::Communicator& comm, const T* send, T* recv, std::size_t count,
                         librun_op_t op = LIBRUN_SUM, void* stream = nullptr) {
  comm.all_reduce(send, recv, count, op, stream);
  comm.synchronize(stream);
}

/// @param comm the communicator that recorded `graph`
inline librun_status_t launch_and_wait(librun_comm_t comm, librun_graph_t graph,
                                       void* stream = nullptr) {
  const librun_status_t status = librun_graph_launch(graph, stream);
  return status == LIBRUN_OK ? librun_synchronize(comm, stream) : status;
}

inline void launch_and_wait(librun::Communicator& comm, librun::Graph& graph,
                            void* stream = nullptr) {
  graph.launch(stream);
  comm.synchronize(stream);
}

}  // namespace librun_test
