#include "train/monitor/rank_places.hpp"

#include "core/base/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {
namespace {

std::string place_text(const parallel::RankPlace& place, bool with_job) {
  std::string text = place.host;
  if (with_job) text += fmt::format(", {}", place.job.empty() ? "no job" : place.job);
  if (!place.device_name.empty()) text += fmt::format(", {} ({})", place.device_name, place.device);
  return text + ", processors " + place.processors;
}

}  // namespace

std::string rank_lines(std::span<const parallel::RankPlace> places) {
  if (places.empty()) return "";
  if (places.size() == 1 && places.front().job.empty() && places.front().device_name.empty()) return "";
  const bool one_job =
      std::ranges::all_of(places, [&](const parallel::RankPlace& place) { return place.job == places.front().job; });
  std::string lines;
  if (one_job && !places.front().job.empty()) lines += named_line("job", places.front().job);
  for (std::size_t first = 0, end = 0; first < places.size(); first = end) {
    const std::string text = place_text(places[first], !one_job);
    for (end = first + 1; end < places.size() && place_text(places[end], !one_job) == text;) ++end;
    const std::string ranks = end - first == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1);
    lines += named_line("rank", fmt::format("{}: {}", ranks, text));
  }
  return lines;
}

}  // namespace mylos::train
