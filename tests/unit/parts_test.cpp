// SPDX-License-Identifier: Apache-2.0
// The small parts of the runtime: selection, registry, mappings, handles, cores.
#include <sys/mman.h>

#include "ipc/peer_table.hpp"
#include "ipc/segment.hpp"
#include "ipc/topology.hpp"
#include "librun/error.hpp"
#include "runtime/allocations.hpp"
#include "runtime/env.hpp"
#include "runtime/handles.hpp"
#include "runtime/registry.hpp"
#include "support/catch.hpp"

using namespace librun;

namespace {

std::shared_ptr<Device> host() { return make_host_device("auto"); }

Buffer buffer_of(std::uint64_t id, std::byte* address, std::size_t size_bytes, bool staged) {
  return {id, address, size_bytes, nullptr, {{staged ? 0u : 7u, 4096, 0, 0}}, staged};
}

cpu_set_t cores_of(std::initializer_list<int> list) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : list) CPU_SET(core, &cores);
  return cores;
}

}  // namespace

TEST_CASE("slots are taken lowest first, returned, and counted") {
  Registry registry;
  std::byte memory[256];
  registry.insert(0, buffer_of(1, memory, 128, false));
  registry.insert(1, buffer_of(2, memory, 256, true));
  CHECK(registry.free_slot() == 2);
  CHECK(registry.find_range(memory + 8, 100) == 0);
  CHECK(registry.find_range(memory + 8, 200) == 1);
  CHECK(registry.find_range(memory, 257) == -1);
  CHECK(registry.used() == 2);
  CHECK(registry.staged() == 1);
  const std::uint64_t digest = registry.digest();
  registry.erase(0);
  registry.erase(0);
  CHECK(registry.digest() != digest);
  CHECK(registry.used() == 1);
  CHECK(registry.free_slot() == 0);
  CHECK(!registry.any_mapped());
}

TEST_CASE("a full table has no free slot") {
  Registry registry;
  std::byte byte;
  for (int slot = 0; slot < LIBRUN_MAX_BUFFERS; ++slot)
    registry.insert(slot, buffer_of(static_cast<std::uint64_t>(slot), &byte, 1, false));
  CHECK(!registry.free_slot());
}

TEST_CASE("a segment keeps its address and loses its contents") {
  ipc::Segment segment(host(), 1, 8192);
  std::byte* const address = segment.data();
  address[100] = std::byte{42};
  CHECK(segment.release() == 0);

  segment.commit();
  CHECK(segment.data() == address);
  CHECK(address[100] == std::byte{0});
}

TEST_CASE("a peer segment is mapped once for all its users, and moves with its owner") {
  const auto device = host();
  ipc::Segment segment(device, 5, 4096);
  ipc::PeerTable table;
  std::byte* const mapped = table.acquire(device, 1, 5, segment.export_memory(), 4096);
  CHECK(table.acquire(device, 1, 5, segment.export_memory(), 4096) == mapped);
  segment.data()[9] = std::byte{7};
  CHECK(mapped[9] == std::byte{7});
  ipc::PeerTable moved = std::move(table);
  CHECK(moved.entries().size() == 1);
  CHECK(moved.release(1, 5) == 0);
  CHECK(moved.entries().size() == 1);
  CHECK(moved.release(1, 5) == 0);
  CHECK(moved.entries().empty());
  CHECK(moved.release(1, 5) == 0);
}

TEST_CASE("memory that is registered cannot be freed") {
  Allocations& allocations = Allocations::instance();
  const int owner = 0;
  auto segment = allocations.allocate(host(), 100, &owner);
  std::byte* const address = segment->data();
  CHECK(allocations.locate(address + 50, 50).offset_bytes == 50);
  CHECK(!allocations.locate(address + 50, 5000).segment);
  CHECK_THROWS_AS(allocations.free(address), Error);
  segment.reset();
  CHECK_THROWS_AS(allocations.free(address + 1), Error);
  allocations.free(address);
  CHECK_THROWS_AS(allocations.free(address), Error);
}

TEST_CASE("a handle that was destroyed or invented is found out") {
  struct Opaque;
  using Table = HandleTable<Opaque*, int, 4>;
  Table& table = Table::instance();
  Opaque* const first = table.insert(std::make_shared<int>(1));
  REQUIRE(table.find(first));
  CHECK(*table.find(first) == 1);
  CHECK(table.take(first));
  CHECK(!table.find(first));
  CHECK(!table.take(first));
  Opaque* const second = table.insert(std::make_shared<int>(2));
  CHECK(second != first);
  CHECK(!table.find(first));
  CHECK(!table.find(nullptr));
  CHECK(!table.find(reinterpret_cast<Opaque*>(~std::uintptr_t{0})));
  for (int i = 0; i < 3; ++i) CHECK(table.insert(std::make_shared<int>(3)));
  CHECK(!table.insert(std::make_shared<int>(4)));
}

TEST_CASE("ranks share cores when there are fewer cores than ranks may claim") {
  CHECK(!ipc::ranks_share_cores({cores_of({0, 1}), cores_of({0, 1})}));
  CHECK(!ipc::ranks_share_cores({cores_of({0}), cores_of({1})}));
  CHECK(ipc::ranks_share_cores({cores_of({0}), cores_of({0})}));
  CHECK(ipc::ranks_share_cores({cores_of({0, 1}), cores_of({0, 1}), cores_of({0, 1})}));
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("abc", "ab") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}
