#include "parallel/launch/wait_report.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mylos::parallel {
namespace {

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
