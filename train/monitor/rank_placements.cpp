#include "train/monitor/rank_placements.hpp"

#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {
namespace {

std::string placement_text(const parallel::RankPlacement& placement, bool with_job) {
  std::string text = placement.host;
  if (with_job) text += fmt::format(", {}", placement.job.empty() ? "no job" : placement.job);
  if (!placement.device_name.empty()) text += fmt::format(", {} ({})", placement.device_name, placement.device);
  return text + ", processors " + placement.processors;
}

}  // namespace

std::string rank_lines(std::span<const parallel::RankPlacement> placements) {
  if (placements.empty()) return "";
  if (placements.size() == 1 && placements.front().job.empty() && placements.front().device_name.empty()) return "";
  const bool one_job = std::ranges::all_of(
      placements, [&](const parallel::RankPlacement& placement) { return placement.job == placements.front().job; });
  std::string lines;
  if (one_job && !placements.front().job.empty()) lines += named_line("job", placements.front().job);
  for (std::size_t first = 0, end = 0; first < placements.size(); first = end) {
    const std::string text = placement_text(placements[first], !one_job);
    for (end = first + 1; end < placements.size() && placement_text(placements[end], !one_job) == text;) ++end;
    const std::string ranks = end - first == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1);
    lines += named_line("rank", fmt::format("{}: {}", ranks, text));
  }
  return lines;
}

}  // namespace mylos::train
