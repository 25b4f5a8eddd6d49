// SPDX-License-Identifier: Apache-2.0
#include "runtime/select.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "kernels/dtype.hpp"

namespace librun {
namespace {

/// What the first of these tables that has an answer says, at every size. The shipped ones, behind
/// the user's, have one for all.
std::vector<Selector::Step> compose(const TuningTables* own, const TuningKey& key) {
  struct Source {
    const TuningTable* table;
    bool by_user;
  };
  // With registered buffers what is for them counts first, whoever's it is.
  std::vector<Source> sources;
  for (const bool registered : {true, false}) {
    if (registered && !key.registered) continue;
    TuningKey wanted = key;
    wanted.registered = registered;
    if (own)
      for (const TuningTable* table : own->fitting(wanted)) sources.push_back({table, true});
    for (const TuningTable* table : TuningTables::shipped().fitting(wanted))
      sources.push_back({table, false});
  }

  std::set<std::size_t> ends{std::numeric_limits<std::size_t>::max()};
  for (const Source& source : sources) {
    if (source.table->from_bytes > 0) ends.insert(source.table->from_bytes - 1);
    for (const TuningStep& step : source.table->steps) ends.insert(step.up_to_bytes);
  }
  std::vector<Selector::Step> steps;
  for (const std::size_t end : ends) {
    const auto source = std::find_if(sources.begin(), sources.end(), [&](const Source& one) {
      return one.table->algo_for(end).has_value();
    });
    const Selector::Step step{end, *source->table->algo_for(end), source->by_user};
    const bool goes_on =
        !steps.empty() && steps.back().algo == step.algo && steps.back().by_user == step.by_user;
    if (goes_on)
      steps.back().up_to_bytes = end;
    else
      steps.push_back(step);
  }
  return steps;
}

}  // namespace

Selector::Selector(const TuningTables* own, TuningKey key) : key_(std::move(key)) {
  for (int dtype = 0; dtype < LIBRUN_DTYPE_COUNT; ++dtype)
    for (const bool registered : {false, true}) {
      TuningKey wanted = key_;
      wanted.registered = registered;
      wanted.element_bytes = element_bytes(static_cast<librun_dtype_t>(dtype));
      steps_[static_cast<std::size_t>(dtype)][registered] = compose(own, wanted);
    }
}

bool Selector::uses_own() const {
  for (const auto& of_type : steps_)
    for (const Steps& steps : of_type)
      for (const Step& step : steps)
        if (step.by_user) return true;
  return false;
}

}  // namespace librun
