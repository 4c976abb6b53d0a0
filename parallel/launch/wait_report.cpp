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
  return a.activity == Activity::waiting && b.activity == Activity::waiting && a.group == b.group &&
         a.sequence == b.sequence && a.operation == b.operation;
}

std::string size_of(std::size_t bytes) {
  constexpr double kibibyte = 1024.0;
  const auto size = static_cast<double>(bytes);
  if (size < kibibyte) return fmt::format("{} bytes", bytes);
  if (size < kibibyte * kibibyte) return fmt::format("{:.1f} KiB", size / kibibyte);
  return fmt::format("{:.1f} MiB", size / kibibyte / kibibyte);
}

template <class Chosen>
std::vector<std::size_t> ranks_where(std::span<const RankState> ranks, const Chosen& chosen) {
  std::vector<std::size_t> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (chosen(ranks[rank])) found.push_back(rank);
  }
  return found;
}

std::string with_hosts(std::span<const RankState> ranks, const std::vector<std::size_t>& named) {
  std::vector<std::string> names;
  for (const std::size_t rank : named) names.push_back(fmt::format("rank {} on {}", rank, ranks[rank].host));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string waiting_ranks(std::span<const RankState> ranks, std::size_t rank) {
  const std::vector<std::size_t> waiting =
      ranks_where(ranks, [&](const RankState& each) { return same_operation(each, ranks[rank]); });
  const bool one = waiting.size() == 1;
  return fmt::format("rank{} {} wait{} since {:.0f} s", one ? "" : "s", fmt::join(waiting, ", "), one ? "s" : "",
                     ranks[rank].seconds);
}

std::string first_line(std::span<const RankState> ranks, std::size_t rank) {
  const RankState& mine = ranks[rank];
  const auto is = [](Activity activity) {
    return [activity](const RankState& each) { return each.activity == activity; };
  };
  const auto describe = [&](const std::vector<std::size_t>& missing, const std::string& why) {
    return fmt::format("{} ha{} not reached: {}; {}; {}", with_hosts(ranks, missing), missing.size() == 1 ? "s" : "ve",
                       activity_text(mine), waiting_ranks(ranks, rank), why);
  };
  if (const auto silent = ranks_where(ranks, is(Activity::silent)); !silent.empty()) {
    return describe(silent, "no response: stopped, or disconnected");
  }
  if (const auto files = ranks_where(ranks, is(Activity::files)); !files.empty()) {
    const RankState& first = ranks[files.front()];
    return describe(files, fmt::format("working on files for {:.0f} s, without progress for {:.0f} s: the file system "
                                       "hangs, or a longer {} would wait",
                                       first.file_seconds, std::max(0.0, first.file_seconds - first.progress_seconds),
                                       setting("collective-timeout")));
  }
  if (const auto computing = ranks_where(ranks, is(Activity::computing)); !computing.empty()) {
    return describe(computing, fmt::format("still computing; a longer {} would wait", setting("collective-timeout")));
  }
  const auto elsewhere = ranks_where(ranks, [&](const RankState& each) { return !same_operation(each, mine); });
  if (!elsewhere.empty()) return describe(elsewhere, "waiting elsewhere; see the lines below");
  return fmt::format("all ranks have reached: {}; but it has not finished for {:.0f} s: {} or the network hangs",
                     activity_text(mine), mine.seconds,
                     mine.operation.starts_with("NCCL") ? "NCCL (NCCL_DEBUG=INFO says more)" : "MPI");
}

std::string line_of(const RankState& state, std::size_t rank) {
  const std::string name = fmt::format("rank {} on {}", rank, state.host);
  switch (state.activity) {
    case Activity::silent:
      return fmt::format("  {}: no answer", name);
    case Activity::waiting:
      return fmt::format("  {}: waits in {}, since {:.1f} s", name, activity_text(state), state.seconds);
    case Activity::files:
    case Activity::computing:
      break;
  }
  return fmt::format("  {}: step {}, {} since {:.1f} s, after {}", name, state.step,
                     state.activity == Activity::files ? "working on files" : "computes", state.seconds,
                     state.operation.empty() ? "no operation" : state.operation);
}

}  // namespace

std::string activity_text(const RankState& state) {
  const std::string operation = state.operation.empty() ? "no operation" : state.operation;
  const std::string size = state.bytes == 0 ? "" : ", " + size_of(state.bytes);
  return state.step == 0 ? operation + size : fmt::format("step {}, {}{}", state.step, operation, size);
}

double excused_seconds(std::span<const RankState> ranks, double limit) {
  double longest = 0.0;
  for (const RankState& state : ranks)
    longest = std::max(longest, std::min(state.file_seconds, state.progress_seconds + file_patience * limit));
  return longest;
}

std::vector<std::string> describe_wait(std::span<const RankState> ranks, std::size_t rank) {
  std::vector<std::string> lines{first_line(ranks, rank)};
  for (std::size_t each = 0; each < ranks.size() && each < most_lines; ++each) {
    lines.push_back(line_of(ranks[each], each));
  }
  if (ranks.size() > most_lines) lines.push_back(fmt::format("  and {} more", ranks.size() - most_lines));
  return lines;
}

}  // namespace mylos::parallel
