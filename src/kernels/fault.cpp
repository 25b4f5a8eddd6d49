// SPDX-License-Identifier: Apache-2.0
#include "kernels/fault.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "librun/error.hpp"

namespace librun::fault {
namespace {

struct Armed {
  std::mutex mutex;
  std::vector<Spec> specs;
  std::map<std::string, unsigned, std::less<>> hits;
};

Armed& armed_faults() {
  static Armed faults;
  return faults;
}
std::atomic<bool> any_armed{false};

[[noreturn]] void reject(std::string_view part, const char* why) {
  throw Error(LIBRUN_INVALID_ARGUMENT, -1,
              "LIBRUN_FAULT: \"" + std::string(part) + "\": " + why + ".",
              "write <point>@<rank>[#<nth>]:<delay=ms|fail|die|stop|corrupt>.");
}

unsigned to_number(std::string_view digits, std::string_view part) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) reject(part, "not a number");
  return value;
}

Spec parse_one(std::string_view part) {
  const auto at = part.find('@');
  const auto colon = part.find(':', at == std::string_view::npos ? 0 : at);
  if (at == std::string_view::npos || at == 0) reject(part, "no point@rank");
  if (colon == std::string_view::npos) reject(part, "no action");
  Spec spec;
  spec.point = part.substr(0, at);
  std::string_view who = part.substr(at + 1, colon - at - 1);
  if (const auto hash = who.find('#'); hash != std::string_view::npos) {
    spec.nth = to_number(who.substr(hash + 1), part);
    who = who.substr(0, hash);
  }
  spec.rank = static_cast<int>(to_number(who, part));
  const std::string_view action = part.substr(colon + 1);
  if (action.substr(0, 6) == "delay=") {
    spec.kind = Spec::Kind::delay;
    spec.delay_ms = to_number(action.substr(6), part);
  } else if (action == "fail") {
    spec.kind = Spec::Kind::fail;
  } else if (action == "die") {
    spec.kind = Spec::Kind::die;
  } else if (action == "stop") {
    spec.kind = Spec::Kind::stop;
  } else if (action == "corrupt") {
    spec.kind = Spec::Kind::corrupt;
  } else {
    reject(part, "unknown action");
  }
  return spec;
}

}  // namespace

std::vector<Spec> parse(std::string_view text) {
  std::vector<Spec> specs;
  while (!text.empty()) {
    const auto comma = text.find(',');
    specs.push_back(parse_one(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return specs;
}

void arm(std::vector<Spec> specs) {
  Armed& faults = armed_faults();
  const std::lock_guard lock(faults.mutex);
  faults.hits.clear();
  faults.specs = std::move(specs);
  any_armed.store(!faults.specs.empty(), std::memory_order_relaxed);
}

namespace detail {

bool armed() noexcept { return any_armed.load(std::memory_order_relaxed); }

Action hit(std::string_view point, int rank) {
  Armed& faults = armed_faults();
  Spec match;
  bool found = false;
  {
    const std::lock_guard lock(faults.mutex);
    for (const Spec& spec : faults.specs) {
      if (spec.point != point || spec.rank != rank) continue;
      const unsigned count = ++faults.hits[spec.point + ":" + std::to_string(spec.nth)];
      if (spec.nth != 0 && spec.nth != count) continue;
      match = spec;
      found = true;
      break;
    }
  }
  if (!found) return Action::none;
  switch (match.kind) {
    case Spec::Kind::delay:
      std::this_thread::sleep_for(std::chrono::milliseconds(match.delay_ms));
      return Action::none;
    case Spec::Kind::die:
      ::kill(::getpid(), SIGKILL);
      return Action::none;
    case Spec::Kind::stop:
      ::kill(::getpid(), SIGSTOP);
      return Action::none;
    case Spec::Kind::fail:
      return Action::fail;
    case Spec::Kind::corrupt:
      return Action::corrupt;
  }
  return Action::none;
}

}  // namespace detail
}  // namespace librun::fault
