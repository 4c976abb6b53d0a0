#include "app/doctor/doctor_finding.hpp"

#include "app/program/exit_codes.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <tuple>

namespace mylos::app {
namespace {

/// Names in the order of the report.
constexpr std::array<std::string_view, 20> names = {
    "program", "launch", "signals", "MPI",    "job",    "processors", "threads",     "GPU",   "providers", "OpenBLAS",
    "NCCL",    "HDF5",   "memory",  "limits", "output", "shared",     "environment", "clock", "cache",     "model"};

const char* to_string(Level level) { return level == Level::ok ? "ok" : level == Level::warning ? "warning" : "error"; }

/// Inserts the range of the finding's values into its text.
void insert_values(Finding& finding) {
  const std::size_t location = finding.text.find("{}");
  if (finding.values.empty() || location == std::string::npos) return;
  const auto [least, most] = std::ranges::minmax(finding.values);
  const std::string low = value_text(least, finding.quantity), high = value_text(most, finding.quantity);
  finding.text.replace(location, 2, low == high ? low : fmt::format("{} to {}", low, high));
}

std::size_t position_of(const FoldedFinding& folded) {
  return static_cast<std::size_t>(std::ranges::find(names, folded.finding.name) - names.begin());
}

void add(std::vector<FoldedFinding>& folded, const Finding& finding, const std::vector<std::size_t>& ranks) {
  const auto key = [](const Finding& each) {
    return std::tie(each.level, each.name, each.text, each.advice, each.quantity);
  };
  const auto same = std::ranges::find_if(folded, [&](const FoldedFinding& each) {
    return each.ranks.empty() == ranks.empty() && key(each.finding) == key(finding) &&
           each.finding.values.empty() == finding.values.empty();
  });
  if (same == folded.end()) {
    folded.push_back({finding, ranks});
    return;
  }
  same->finding.values.insert(same->finding.values.end(), finding.values.begin(), finding.values.end());
  same->ranks.insert(same->ranks.end(), ranks.begin(), ranks.end());
}

std::size_t count(std::span<const FoldedFinding> findings, Level level) {
  return static_cast<std::size_t>(
      std::ranges::count_if(findings, [&](const FoldedFinding& each) { return each.finding.level == level; }));
}

}  // namespace

void append(Findings& to, Findings more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::string value_text(double value, Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes:
      return bytes_text(static_cast<std::size_t>(value));
    case Quantity::bytes_per_second:
      return fmt::format("{:.{}f} MB/s", 1e-6 * value, value < 1e7 ? 1 : 0);
    case Quantity::seconds:
      return value < 1e-3  ? fmt::format("{:.3g} us", 1e6 * value)
             : value < 1.0 ? fmt::format("{:.3g} ms", 1e3 * value)
                           : fmt::format("{:.3g} s", value);
  }
  return {};
}

std::vector<FoldedFinding> fold(const Findings& of_launch, std::span<const Findings> of_ranks) {
  std::vector<FoldedFinding> folded;
  for (const Finding& finding : of_launch) add(folded, finding, {});
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const Finding& finding : of_ranks[rank]) add(folded, finding, {rank});
  }
  for (FoldedFinding& each : folded) insert_values(each.finding);
  std::ranges::stable_sort(folded, {}, position_of);
  return folded;
}

std::string ranks_text(std::span<const std::size_t> ranks) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    for (end = begin + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : ",", ranks[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ranks[end - 1]);
  }
  return text;
}

std::string report_text(std::span<const FoldedFinding> findings, std::size_t ranks) {
  std::string text;
  for (const FoldedFinding& each : findings) {
    const std::size_t of = each.ranks.size();
    const std::string who =
        of == 0 || of == ranks ? "" : fmt::format("rank{} {}: ", of > 1 ? "s" : "", ranks_text(each.ranks));
    const Finding& finding = each.finding;
    text += fmt::format("{:<8} {:<11} {}{}{}{}\n", to_string(finding.level), finding.name, who, finding.text,
                        finding.advice.empty() ? "" : "; ", finding.advice);
  }
  return text + fmt::format("{}, {}\n", count_of(count(findings, Level::error), "error"),
                            count_of(count(findings, Level::warning), "warning"));
}

nlohmann::ordered_json report_json(std::span<const FoldedFinding> findings, std::size_t ranks, std::size_t nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FoldedFinding& each : findings) {
    list.push_back({{"level", to_string(each.finding.level)},
                    {"name", each.finding.name},
                    {"ranks", each.ranks.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(each.ranks)},
                    {"text", each.finding.text},
                    {"advice", each.finding.advice}});
  }
  return {{"ranks", ranks},
          {"nodes", nodes},
          {"errors", count(findings, Level::error)},
          {"warnings", count(findings, Level::warning)},
          {"findings", list}};
}

int doctor_exit_code(std::span<const FoldedFinding> findings) {
  return count(findings, Level::error) > 0 ? failure : success;
}

}  // namespace mylos::app
