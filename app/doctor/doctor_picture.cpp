#include "app/doctor/doctor_picture.hpp"

#include "app/doctor/doctor_gpus.hpp"
#include "core/base/json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace mylos::app {
namespace {

using nlohmann::json;

constexpr const char* sent_findings = "the findings of a rank";

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

RankReport unpack_report(const std::string& text) {
  const json value = parse_json(text, sent_findings);
  return {findings_of(value.at("findings")), processor_facts_of(value.at("processors")), value.at("device"),
          value.at("build")};
}

using RankReports = std::map<std::size_t, RankReport>;  // by rank

/// Adds findings about builds that differ.
void compare_builds(const RankReports& reports, Picture& picture) {
  const auto differs = std::ranges::find_if(
      reports, [&](const auto& each) { return each.second.build != reports.begin()->second.build; });
  if (differs == reports.end()) return;
  picture.of_launch.push_back({Level::error, "program",
                               fmt::format("rank {} runs a different build from rank 0", differs->first),
                               "start the same program on every node"});
}

/// Checks the ranks of each node against each other.
void compare_nodes(const RankReports& reports, Picture& picture) {
  std::map<std::size_t, std::vector<std::size_t>> nodes;
  for (const auto& [rank, report] : reports) nodes[picture.first_of_node[rank]].push_back(rank);
  for (const auto& [first, ranks] : nodes) {
    std::vector<ProcessorFacts> processors;
    std::vector<std::string> devices;
    for (const std::size_t rank : ranks) {
      processors.push_back(reports.at(rank).processors);
      devices.push_back(reports.at(rank).device);
    }
    std::vector<Findings> of_processors = processor_findings(processors), of_devices = shared_gpu_findings(devices);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      append(picture.of_ranks[ranks[i]], std::move(of_processors[i]));
      append(picture.of_ranks[ranks[i]], std::move(of_devices[i]));
    }
    append(picture.of_launch, pinning_findings(processors, ranks));
  }
}

}  // namespace

std::string pack(const RankReport& report) {
  return dump({{"findings", to_json(report.findings)},
               {"processors", to_json(report.processors)},
               {"device", report.device},
               {"build", report.build}});
}

std::string pack(const Findings& findings) { return dump(to_json(findings)); }

std::size_t Picture::nodes() const {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < first_of_node.size(); ++rank) count += first_of_node[rank] == rank ? 1 : 0;
  return count;
}

void Picture::take_reports(std::span<const std::optional<std::string>> reports) {
  RankReports present;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank]) present.emplace(rank, unpack_report(*reports[rank]));
  }
  for (const auto& [rank, report] : present) append(of_ranks[rank], report.findings);
  compare_builds(present, *this);
  compare_nodes(present, *this);
}

void Picture::take_file_findings(std::span<const std::optional<std::string>> findings) {
  for (std::size_t rank = 0; rank < findings.size(); ++rank) {
    if (!findings[rank]) continue;
    const Findings found = findings_of(parse_json(*findings[rank], sent_findings));
    for (std::size_t other = rank; other < of_ranks.size(); ++other) {
      for (const Finding& each : found) {
        const bool is_of_node = each.name == "output" && first_of_node[other] == rank;
        if (other == rank || is_of_node) of_ranks[other].push_back(each);
      }
    }
  }
}

}  // namespace mylos::app
