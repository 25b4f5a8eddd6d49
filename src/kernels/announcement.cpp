// SPDX-License-Identifier: Apache-2.0
#include "kernels/device.hpp"

namespace librun {
namespace {

std::uint64_t offset_in_slot(const AllReduceArgs& args, int slot, const std::byte* address) {
  if (slot < 0) return 0;
  const ControlBlock& control = *args.control;
  return static_cast<std::uint64_t>(address - control.slots[slot].base[control.rank]);
}

}  // namespace

Announcement announcement_of(const AllReduceArgs& args, std::uint64_t call) {
  Announcement mine{};
  mine.count = args.count;
  mine.call = call;
  mine.send_offset = offset_in_slot(args, args.send_slot, args.send);
  mine.recv_offset = offset_in_slot(args, args.recv_slot, args.recv);
  mine.dtype = static_cast<std::uint8_t>(args.dtype);
  mine.op = static_cast<std::uint8_t>(args.op);
  mine.algo = static_cast<std::uint8_t>(args.algo);
  mine.in_place = args.send == args.recv;
  mine.send_slot = static_cast<std::int16_t>(args.send_slot);
  mine.recv_slot = static_cast<std::int16_t>(args.recv_slot);
  mine.send_number = args.send_number;
  mine.recv_number = args.recv_number;
  return mine;
}

bool same_call(const Announcement& a, const Announcement& b) {
  return a.count == b.count && a.dtype == b.dtype && a.op == b.op && a.algo == b.algo;
}

}  // namespace librun
