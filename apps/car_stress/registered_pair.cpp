// SPDX-License-Identifier: Apache-2.0
#include "car_stress/registered_pair.hpp"

namespace car::stress {

RegisteredPair::RegisteredPair(Device& device, librun::Communicator& comm,
                               librun::Communicator& lender, std::size_t each_bytes, Random& random)
    : comm_(&comm), owner_(&comm), each_bytes_(each_bytes) {
  const auto kind = static_cast<Kind>(random.below(5));
  if (kind == Kind::lent) owner_ = &lender;
  switch (kind) {
    case Kind::plain:
      plain_ = DeviceBuffer(device, 2 * each_bytes);
      input_ = plain_.data();
      output_ = input_ + each_bytes;
      break;
    case Kind::slices:
      input_ = allocate(*owner_, 2 * each_bytes);
      output_ = input_ + each_bytes;
      break;
    case Kind::own:
    case Kind::lent:
    case Kind::twice:
      input_ = allocate(*owner_, each_bytes);
      output_ = allocate(*owner_, each_bytes);
      break;
  }
  add(input_);
  add(output_);
  if (kind == Kind::twice) add(output_);
}

std::byte* RegisteredPair::allocate(librun::Communicator& owner, std::size_t size_bytes) {
  allocations_.push_back(owner.allocate(size_bytes));
  return static_cast<std::byte*>(allocations_.back());
}

void RegisteredPair::unregister() {
  for (; !handles_.empty(); handles_.pop_back()) comm_->unregister_buffer(handles_.back());
}

void RegisteredPair::free_memory() {
  for (void* const memory : allocations_) owner_->deallocate(memory);
  allocations_.clear();
  plain_ = {};
  input_ = output_ = nullptr;
}

}  // namespace car::stress
