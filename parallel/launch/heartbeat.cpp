#include "parallel/launch/heartbeat.hpp"

#include "core/base/setting_error.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mylos::parallel {
namespace {

using Activity = RankState::Activity;

/// Time that a rank which ends has for it before others tell that they wait, in seconds.
constexpr double time_to_end = 3.0;

/// A rank that looks less often does not run, in seconds.
constexpr double usual_pause = 1.0;

/// Returns how long the first rank waits for answers, in seconds: longer for many ranks, to which it has to connect.
double patience_of(double limit, std::size_t size) {
  return std::clamp(limit / 4, 1.0, 10.0) + 0.001 * static_cast<double>(size);
}

bool waits_for(const RankState& state, double limit) {
  return state.activity == Activity::waiting && state.seconds >= limit;
}

using Activity = RankState::Activity;

/// Maximum number of lines for single ranks; a report of thousands would hide its first line.
constexpr std::size_t most_lines = 64;

bool same_operation(const RankState& a, const RankState& b) {
  return a.activity == b.activity && a.group == b.group && a.sequence == b.sequence && a.operation == b.operation;
}

std::string operation_of(const RankState& state) {
  return state.operation.front() == '\0' ? "no operation" : state.operation.data();
}

std::string size_text(std::size_t bytes) {
  const double kibibytes = static_cast<double>(bytes) / 1024.0;
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  return kibibytes < 1024.0 ? fmt::format("{:.1f} KiB", kibibytes) : fmt::format("{:.1f} MiB", kibibytes / 1024.0);
}

/// Explains why ranks are missing. `first` is the lowest of them.
std::string reason(const RankState& first) {
  switch (first.activity) {
    case Activity::silent:
      return "no response: stopped, or disconnected";
    case Activity::files:
      return fmt::format(
          "working on files for {:.0f} s, without progress for {:.0f} s: the file system hangs, or a longer {} would "
          "wait",
          first.file_seconds, std::max(0.0, first.file_seconds - first.progress_seconds),
          setting("collective-timeout"));
    case Activity::computing:
      return fmt::format("still computing; a longer {} would wait", setting("collective-timeout"));
    case Activity::waiting:
      break;
  }
  return "waiting elsewhere; see the lines below";
}

std::string line_of(const RankState& state) {
  if (state.activity == Activity::silent) return "no answer";
  if (state.activity == Activity::waiting) {
    return fmt::format("waits in {}, since {:.1f} s", activity_text(state), state.seconds);
  }
  return fmt::format("step {}, {} since {:.1f} s, after {}", state.step,
                     state.activity == Activity::files ? "working on files" : "computes", state.seconds,
                     operation_of(state));
}

}  // namespace

double turn_of(std::size_t place, double limit) { return std::min(0.5 * static_cast<double>(place), limit); }

Heartbeat::Heartbeat(std::size_t size, std::size_t rank, Send send)
    : size_(size), rank_(rank), failed_(size), told_(size), send_(std::move(send)) {}

void Heartbeat::receive(std::size_t from, const Beat& beat, const Moment& moment) {
  if (beat.failed < failed_) note_failure(beat.failed, moment.now);
  if (from == 0) heard_ = std::max(heard_, moment.now);
  if (is_deciding_) states_[from] = beat.state;
  if (rank_ != 0 || waits_for(beat.state, moment.limit)) is_asked_ = true;
}

void Heartbeat::look(const Moment& moment) {
  const double patience = patience_of(moment.limit, size_);
  // No one could be heard while this process did not run, as if its job was suspended. What was heard before is old.
  const double missed = std::max(0.0, moment.now - std::exchange(looked_, moment.now) - usual_pause);
  heard_ += missed;
  sent_ += missed;
  if (is_deciding_ && missed > patience) {
    is_deciding_ = false;
    is_asked_ = true;
    sent_ = moment.now - patience;
  }
  if (moment.ends && rank_ < failed_) note_failure(rank_, moment.now);
  if (std::exchange(told_, failed_) != failed_ && (rank_ == 0 || rank_ == failed_)) send(moment.own, rank_ == 0);
  if (moment.now < quiet_until_) return;
  const bool is_late = waits_for(moment.own, moment.limit), is_new = std::exchange(is_late_, is_late) != is_late;
  if (is_new) heard_ = moment.now;
  if (is_deciding_) decide(moment, patience);
  if (late_) return;
  const bool is_due = moment.now - sent_ >= patience;
  if (rank_ == 0 ? is_due && (is_late || is_asked_) : is_asked_ || is_new || (is_due && is_late)) {
    sent_ = moment.now;
    is_asked_ = false;
    is_deciding_ = rank_ == 0;
    if (is_deciding_) states_.assign(size_, {});
    send(moment.own, is_deciding_);
  }
  if (rank_ != 0 && is_late && moment.now - heard_ >= 2 * patience + turn_of(rank_, moment.limit)) late_ = rank_;
}

void Heartbeat::tell_all(const RankState& own) {
  failed_ = std::min(failed_, rank_);
  send(own, true);
}

void Heartbeat::note_failure(std::size_t failed, double now) {
  failed_ = failed;
  quiet_until_ = heard_ = now + time_to_end;
}

void Heartbeat::decide(const Moment& moment, double patience) {
  states_[0] = moment.own;
  const bool is_any_silent = std::ranges::find(states_, Activity::silent, &RankState::activity) != states_.end();
  // A rank that does not answer may be the one that the ranks working with files wait for, so there is no excuse.
  double excused = is_any_silent ? 0.0 : excused_seconds(states_, moment.limit);
  // A wait stays excused after that work.
  const auto was_excused = [&](const RankState& state) { return waits_for(state, moment.now - excused_at_); };
  if (!is_any_silent && std::ranges::any_of(states_, was_excused)) excused = std::max(excused, excused_);
  const auto is_late = [&](const RankState& state) { return waits_for(state, moment.limit + excused); };
  const auto late = std::ranges::find_if(states_, is_late);
  const bool is_any_late = late != states_.end();
  if ((is_any_silent || is_any_late) && moment.now - sent_ < patience) return;
  if (is_any_late) late_ = static_cast<std::size_t>(late - states_.begin());
  is_deciding_ = false;
  excused_ = excused;
  excused_at_ = moment.now;
}

void Heartbeat::send(const RankState& own, bool to_all) {
  const Beat beat{own, failed_};
  for (std::size_t to = 0; to < (to_all ? size_ : 1); ++to) {
    if (to != rank_) send_(to, beat);
  }
}

std::string activity_text(const RankState& state) {
  return (state.step == 0 ? "" : fmt::format("step {}, ", state.step)) + operation_of(state) +
         (state.bytes == 0 ? "" : ", " + size_text(state.bytes));
}

double excused_seconds(std::span<const RankState> ranks, double limit) {
  double longest = 0.0;
  for (const RankState& state : ranks)
    longest = std::max(longest, std::min(state.file_seconds, state.progress_seconds + file_patience * limit));
  return longest;
}

std::vector<std::string> describe_wait(std::span<const RankState> ranks, std::span<const RankPlacement> placements,
                                       std::size_t rank) {
  const RankState& mine = ranks[rank];
  const Activity cause = std::ranges::min(ranks, {}, &RankState::activity).activity;
  const RankState* first = nullptr;
  std::vector<std::string> missing, lines{""};
  std::vector<std::size_t> waiting;
  for (std::size_t each = 0; each < ranks.size(); ++each) {
    const std::string name = fmt::format("rank {} on {}", each, placements[each].host);
    if (each < most_lines) lines.push_back(fmt::format("  {}: {}", name, line_of(ranks[each])));
    if (same_operation(ranks[each], mine)) {
      waiting.push_back(each);
    } else if (ranks[each].activity == cause) {
      if (missing.empty()) first = &ranks[each];
      missing.push_back(name);
    }
  }
  if (ranks.size() > most_lines) lines.push_back(fmt::format("  and {} more", ranks.size() - most_lines));
  const bool one = waiting.size() == 1;
  lines[0] =
      first == nullptr
          ? fmt::format("all ranks have reached: {}; but it has not finished for {:.0f} s: {} or the network hangs",
                        activity_text(mine), mine.seconds,
                        operation_of(mine).starts_with("NCCL") ? "NCCL (NCCL_DEBUG=INFO says more)" : "MPI")
          : fmt::format("{} ha{} not reached: {}; rank{} {} wait{} since {:.0f} s; {}", fmt::join(missing, ", "),
                        missing.size() == 1 ? "s" : "ve", activity_text(mine), one ? "" : "s", fmt::join(waiting, ", "),
                        one ? "s" : "", mine.seconds, reason(*first));
  return lines;
}

}  // namespace mylos::parallel
