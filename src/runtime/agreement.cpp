// SPDX-License-Identifier: Apache-2.0
#include "runtime/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace librun {
namespace {

template <std::size_t N>
void set_text(char (&field)[N], const std::string& text) {
  std::memset(field, 0, N);
  text.copy(field, N - 1);
}

ipc::Record to_record(const Ballot& ballot) {
  ipc::Record record{};
  std::memcpy(record.data(), &ballot, sizeof(ballot));
  return record;
}

Ballot to_ballot(const ipc::Record& record) {
  Ballot ballot;
  std::memcpy(&ballot, record.data(), sizeof(ballot));
  return ballot;
}

std::string join(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

Error missing_error(const ipc::GatherResult& result, const Ballot& mine) {
  if (result.event) {
    const ipc::PeerEvent& event = *result.event;
    // Whoever met the cause in a phase has named that.
    if (event.text.find(" phase ") != std::string::npos)
      return {event.code, event.culprit, event.text};
    return {event.code, event.culprit,
            fmt::format("{} failed in phase {}: {}", request_name(mine.request), mine.phase,
                        event.text)};
  }
  return {LIBRUN_TIMEOUT, result.missing.front(),
          fmt::format("{}: {} did not come to phase {} in time.", request_name(mine.request),
                      join(result.missing), mine.phase),
          "all ranks must make the call; LIBRUN_TIMEOUT_MS sets the deadline."};
}

/// The ranks are in different calls, or in different phases of one.
void check_same_phase(const Ballots& ballots) {
  const auto differs = [&](const Ballot& ballot) {
    return ballot.request != ballots[0].request || std::strcmp(ballot.phase, ballots[0].phase) != 0;
  };
  const auto odd = std::find_if(ballots.begin(), ballots.end(), differs);
  if (odd == ballots.end()) return;
  std::string calls;
  for (std::size_t rank = 0; rank < ballots.size(); ++rank)
    calls += fmt::format("{}rank {} {} ({})", rank ? ", " : "", rank,
                         request_name(ballots[rank].request), ballots[rank].phase);
  throw Error(LIBRUN_INVALID_STATE, static_cast<int>(odd - ballots.begin()),
              "the ranks made different calls: " + calls + ".",
              "all ranks must make the same calls in the same order.");
}

}  // namespace

const char* request_name(Request request) {
  static const char* const kNames[] = {"create",   "suspend",    "resume",     "close",
                                       "register", "unregister", "all_reduce", "suspend_requested"};
  const auto index = static_cast<std::size_t>(request);
  return index < std::size(kNames) ? kNames[index] : "?";
}

Ballot make_ballot(Request request, const char* phase) {
  Ballot ballot;
  ballot.request = request;
  set_text(ballot.phase, phase);
  return ballot;
}

void Ballot::set_error(const Error& error) {
  status = error.code();
  culprit = error.rank();
  rejected = dynamic_cast<const Rejection*>(&error) != nullptr;
  set_text(text, error.text());
  set_text(hint, error.hint());
}

void take_news(Ballot& mine, const ipc::Watch& watch, int world) {
  if (!watch || (mine.status != LIBRUN_OK && !mine.rejected)) return;
  const auto news = watch(std::vector<bool>(static_cast<std::size_t>(world), false));
  if (news && news->kind == ipc::PeerEvent::Kind::aborted)
    mine.set_error(Error(news->code, news->culprit, news->text));
}

Ballots vote(ipc::Exchange& exchange, const Ballot& mine, ipc::Deadline deadline,
             const ipc::Watch& watch) {
  const ipc::GatherResult result = exchange.gather(to_record(mine), deadline, watch);
  if (!result.ok()) {
    const Error error = missing_error(result, mine);
    tell_late_ranks(exchange, mine.request, error);
    throw error;
  }
  Ballots ballots;
  for (const ipc::Record& record : result.records) ballots.push_back(to_ballot(record));

  for (const Ballot& ballot : ballots)
    if (ballot.last_words)
      throw Error(static_cast<librun_status_t>(ballot.status), ballot.culprit, ballot.text,
                  ballot.hint);
  check_same_phase(ballots);
  // A rank that waited in vain tells less than the one that it waited for; a rejection, least.
  const auto weight = [](const Ballot& ballot) {
    if (ballot.status == LIBRUN_OK) return 0;
    if (ballot.rejected) return 1;
    return ballot.status == LIBRUN_TIMEOUT ? 2 : 3;
  };
  const Ballot* worst = nullptr;
  int worst_rank = 0;
  for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
    const Ballot& ballot = ballots[rank];
    if (weight(ballot) <= (worst ? weight(*worst) : 0)) continue;
    worst = &ballot;
    worst_rank = static_cast<int>(rank);
  }
  if (!worst) return ballots;
  const auto code = static_cast<librun_status_t>(worst->status);
  if (worst->rejected)
    throw Rejection(code, worst_rank,
                    fmt::format("{} refused by rank {}: {}", request_name(mine.request), worst_rank,
                                worst->text),
                    worst->hint);
  throw Error(code, worst->culprit >= 0 ? worst->culprit : worst_rank,
              fmt::format("{} failed in phase {} on rank {}: {}", request_name(mine.request),
                          mine.phase, worst_rank, worst->text),
              worst->hint);
}

void tell_late_ranks(ipc::Exchange& exchange, Request request, const Error& cause) noexcept {
  Ballot ballot = make_ballot(request, "failed");
  ballot.set_error(cause);
  ballot.last_words = 1;
  exchange.tell_late_ranks(to_record(ballot));
}

}  // namespace librun
