#include "app/doctor/doctor_finding.hpp"

#include "app/program/exit_codes.hpp"
#include "core/base/quantities.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace mylos::app {
namespace {

/// Names in the order of the report.
constexpr std::array<std::string_view, 20> names = {
    "program", "launch", "signals", "MPI",    "job",    "processors", "threads",     "GPU",   "providers", "OpenBLAS",
    "NCCL",    "HDF5",   "memory",  "limits", "output", "shared",     "environment", "clock", "cache",     "model"};

constexpr std::array<std::string_view, 3> levels = {"ok", "warning", "error"};

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

namespace {

/// Findings that differ only in their values, which lie between `least` and `most`.
struct Group {
  Finding finding;
  double least = 0.0, most = 0.0;
  std::vector<std::size_t> ranks;
};

bool is_same(const Finding& a, const Finding& b) {
  return a.level == b.level && a.name == b.name && a.text == b.text && a.advice == b.advice &&
         a.value.has_value() == b.value.has_value() && a.quantity == b.quantity;
}

/// Returns the finding with the group's values inserted into its text.
Finding shown(const Group& group) {
  Finding finding = group.finding;
  const std::size_t location = finding.text.find("{}");
  if (!finding.value || location == std::string::npos) return finding;
  const std::string least = value_text(group.least, finding.quantity), most = value_text(group.most, finding.quantity);
  finding.text.replace(location, 2, least == most ? least : fmt::format("{} to {}", least, most));
  return finding;
}

std::size_t position_of(const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

void add(std::vector<Group>& groups, const Finding& finding, const std::vector<std::size_t>& ranks) {
  const double value = finding.value.value_or(0.0);
  const auto same = std::ranges::find_if(groups, [&](const Group& group) {
    return group.ranks.empty() == ranks.empty() && is_same(group.finding, finding);
  });
  if (same == groups.end()) {
    groups.push_back({finding, value, value, ranks});
    return;
  }
  same->least = std::min(same->least, value);
  same->most = std::max(same->most, value);
  same->ranks.insert(same->ranks.end(), ranks.begin(), ranks.end());
}

std::size_t count(std::span<const FoldedFinding> findings, Level level) {
  return static_cast<std::size_t>(
      std::ranges::count_if(findings, [&](const FoldedFinding& each) { return each.finding.level == level; }));
}

}  // namespace

std::string to_string(Level level) { return std::string(levels.at(static_cast<std::size_t>(level))); }

nlohmann::json to_json(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& each : findings) {
    list.push_back({{"level", static_cast<int>(each.level)},
                    {"name", each.name},
                    {"text", each.text},
                    {"advice", each.advice},
                    {"value", each.value ? nlohmann::json(*each.value) : nlohmann::json()},
                    {"quantity", static_cast<int>(each.quantity)}});
  }
  return list;
}

Findings findings_of(const nlohmann::json& value) {
  Findings findings;
  for (const nlohmann::json& each : value) {
    findings.push_back({static_cast<Level>(each.at("level").get<int>()), each.at("name"), each.at("text"),
                        each.at("advice"),
                        each.at("value").is_null() ? std::nullopt : std::optional(each.at("value").get<double>()),
                        static_cast<Quantity>(each.at("quantity").get<int>())});
  }
  return findings;
}

std::vector<FoldedFinding> fold(const Findings& of_launch, std::span<const Findings> of_ranks) {
  std::vector<Group> groups;
  for (const Finding& finding : of_launch) add(groups, finding, {});
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const Finding& finding : of_ranks[rank]) add(groups, finding, {rank});
  }
  std::ranges::stable_sort(groups, {}, [](const Group& group) { return position_of(group.finding.name); });
  std::vector<FoldedFinding> folded;
  for (const Group& group : groups) folded.push_back({shown(group), group.ranks});
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
