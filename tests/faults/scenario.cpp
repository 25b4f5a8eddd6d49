// SPDX-License-Identifier: Apache-2.0
#include "faults/scenario.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "support/wait_for.hpp"
#include "support/waiting.hpp"

namespace librun_test {
namespace {

constexpr std::size_t kCount = 1000;
constexpr std::size_t kRegisteredBytes = 4096;

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

}  // namespace

Ending Ending::of(const std::string& call, librun_status_t status,
                  std::chrono::milliseconds elapsed) {
  librun_error_info_t info{};
  info.struct_size = sizeof(info);
  librun_last_error_info(&info);
  return {call, status, info.rank, info.text, elapsed};
}

std::string Ending::describe() const {
  if (call.empty()) return "nothing failed";
  return call + " gave \"" + librun_status_string(status) + "\", culprit " +
         std::to_string(culprit) + ": " + text;
}

Life::~Life() {
  if (comm_) librun_comm_destroy(comm_);
}

librun_status_t Life::create(bool stepped) {
  librun::Config config;
  if (stepped) config.algo = LIBRUN_ALGO_STEPPED;
  return librun_comm_create(mpi_, &config, &comm_);
}

librun_status_t Life::register_one() {
  void* memory = nullptr;
  const librun_status_t status = librun_malloc(comm_, kRegisteredBytes, &memory);
  return status == LIBRUN_OK ? librun_register(comm_, memory, kRegisteredBytes, &buffer_) : status;
}

librun_status_t Life::sum() {
  DeviceVector<float> data(kCount, 1.0f);
  const librun_status_t status =
      all_reduce_and_wait(comm_, data.data(), data.data(), kCount, LIBRUN_FLOAT32, LIBRUN_SUM);
  if (status != LIBRUN_OK) return status;
  const auto right = std::count(data.begin(), data.end(), static_cast<float>(world_));
  return right == static_cast<long>(kCount) ? LIBRUN_OK : LIBRUN_CUDA;  // no other call gives this
}

librun_state_t Life::state() const {
  librun_state_t state = LIBRUN_CLOSED;
  if (comm_) librun_comm_state(comm_, &state);
  return state;
}

bool Life::meet() const {
  constexpr std::chrono::seconds kPatience{2};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(mpi_, &request);
  int done = 0;
  wait_for(
      [&] {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        return done != 0 || state() == LIBRUN_FAILED_STATE;
      },
      kPatience);
  return done != 0 || state() != LIBRUN_FAILED_STATE;
}

Ending Life::run(bool stepped, const std::string& until) {
  using Call = std::pair<const char*, std::function<librun_status_t()>>;
  const auto sums = [this] { return sum(); };
  std::vector<Call> calls{{"create", [&] { return create(stepped); }}};
  if (!stepped)
    calls.insert(calls.end(), {{"register", [this] { return register_one(); }},
                               {"all_reduce", sums},
                               {"suspend", [this] { return suspend(); }},
                               {"resume", [this] { return resume_on_same(); }}});
  calls.emplace_back("all_reduce", sums);
  if (!stepped)
    calls.emplace_back("unregister", [this] { return librun_unregister(comm_, buffer_); });
  calls.emplace_back("close", [this] { return librun_comm_close(comm_); });

  for (const auto& [name, call] : calls) {
    if (name == until) break;
    // Who hears of a death while it waits for the others has been told, and makes no call any more.
    if (in_step_ && !meet())
      return Ending::of(name, librun_check(comm_), std::chrono::milliseconds(0));
    const auto start = std::chrono::steady_clock::now();
    const librun_status_t status = call();
    elapsed_[name] = std::max(elapsed_[name], since(start));
    if (status != LIBRUN_OK) return Ending::of(name, status, elapsed_[name]);
  }
  return {};
}

std::string Life::check_failed(const std::string& cause) {
  if (!comm_) return "";  // a creation that fails gives no communicator
  if (state() != LIBRUN_FAILED_STATE)
    return std::string("the state is ") + librun_state_name(state());
  float value = 0;
  const std::pair<const char*, std::function<librun_status_t()>> uses[] = {
      {"all_reduce",
       [&] {
         return librun_all_reduce(comm_, &value, &value, 1, LIBRUN_FLOAT32, LIBRUN_SUM, nullptr);
       }},
      {"suspend", [&] { return suspend(); }},
      {"resume", [&] { return resume(); }},
      {"register", [&] { return register_one(); }},
      {"check", [&] { return librun_check(comm_); }}};
  for (const auto& [name, use] : uses) {
    const librun_status_t status = use();
    const std::string text = librun_last_error();
    if (status != LIBRUN_FAILED || text.find(cause) == std::string::npos)
      return std::string(name) + " after the failure gave \"" + librun_status_string(status) +
             "\": " + text;
  }
  if (librun_comm_close(comm_) != LIBRUN_OK)
    return std::string("close after the failure: ") + librun_last_error();
  return state() == LIBRUN_CLOSED ? "" : "it is not closed after its close";
}

}  // namespace librun_test
