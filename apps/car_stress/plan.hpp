// SPDX-License-Identifier: Apache-2.0
// What every cycle does: a pure function of the seed, the cycle and a few limits, so that one cycle
// can be replayed alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "librun/types.h"

namespace car::stress {

/// Which ranks form a communicator.
enum class Members { world, reversed, halves, parity, without_one };

struct GroupPlan {
  Members members = Members::world;
  librun_algo_t algo = LIBRUN_ALGO_AUTO;
};

struct CallPlan {
  int group = 0;
  librun_dtype_t dtype = LIBRUN_FLOAT32;
  librun_op_t op = LIBRUN_SUM;
  std::size_t count = 0;
  std::uint64_t seed = 0;
  int repeats = 1;  ///< back to back
  bool in_place = false;
  bool mixed_in_place = false;  ///< every rank decides for itself
  bool spoil_input = false;     ///< overwrite the input as soon as the call returns
  bool jitter = false;          ///< ranks arrive a few microseconds apart
};

/// Recorded once and replayed through suspend and resume.
struct GraphPlan {
  int group = 0;
  std::vector<CallPlan> calls;
};

/// Communicators and graphs live for a number of cycles, then others take their place.
struct EpochPlan {
  std::vector<GroupPlan> groups;  ///< from group 1 on; group 0 lives as long as the run
  std::vector<GraphPlan> graphs;  ///< from graph 1 on; graph 0 lives as long as the run
};

/// Arguments that must be refused on every rank, leaving everything as it was.
enum class Probe {
  null_pointer,
  misaligned,
  overlap,
  huge_count,
  count_differs,
  dtype_differs,
  op_differs,
  suspend_in_capture,
  free_registered,
};
inline constexpr int kProbes = 9;

struct ProbePlan {
  Probe probe = Probe::null_pointer;
  int group = 0;
  std::uint64_t seed = 0;
};

enum class Transition { none, single, each, all };
enum class Resume { plain, on_another, after_wrong_one };

struct CyclePlan {
  std::vector<CallPlan> before, during, after;
  std::vector<ProbePlan> probes;
  Transition transition = Transition::all;
  int group = 0;  ///< of a single transition
  Resume resume = Resume::plain;
  bool repeat_transitions = false;  ///< a second suspend and resume must say "already there"
  bool calls_while_suspended = false;
  int churn_group = -1;  ///< whose registered buffers are replaced
  bool churn_while_suspended = false;
  std::uint64_t order_seed = 0;
  int kill_step = 0;  ///< before which step a rank that is to be killed dies
};

struct Limits {
  std::uint64_t seed = 1;
  int world = 1;
  int calls_per_cycle = 10;
  std::size_t max_bytes = 4 << 20;
  int groups = 4;
  int graphs = 3;
  librun_algo_t algo = LIBRUN_ALGO_AUTO;  ///< auto: any
  bool must_move = false;                 ///< every cycle suspends something that has mappings
  bool suspend_everything = false;        ///< in every cycle
};

inline constexpr std::uint64_t kCyclesPerEpoch = 25;
/// Steps of a cycle before which a rank can be killed.
inline constexpr int kKillSteps = 5;

/// Group 0 and graph 0, which live as long as the run.
GroupPlan plan_first_group(const Limits& limits);
GraphPlan plan_first_graph(const Limits& limits);
EpochPlan plan_epoch(const Limits& limits, std::uint64_t epoch);
CyclePlan plan_cycle(const Limits& limits, const EpochPlan& epoch, std::uint64_t cycle);

/// One line each, for messages and --list.
std::string describe(const CallPlan& call);
std::string describe(const GroupPlan& group);
std::vector<std::string> describe(const CyclePlan& cycle);
const char* name_of(Members members);
const char* name_of(Probe probe);

/// Most ranks that one communicator of this kind has.
int largest_world(Members members, int world);

}  // namespace car::stress
