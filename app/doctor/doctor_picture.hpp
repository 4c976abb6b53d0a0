#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "app/doctor/doctor_processors.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The first rank's view of all ranks.
namespace mylos::app {

/// The report of a rank to the first one.
struct RankReport {
  Findings findings;
  ProcessorFacts processors;
  std::string device, build;
};
std::string pack(const RankReport& report);

/// Findings are sent between ranks as text.
std::string pack(const Findings& findings);

/// The findings of all ranks, collected by the first one.
struct Picture {
  std::vector<std::size_t> first_of_node;  ///< for each rank, the lowest rank on its node
  std::vector<Findings> of_ranks;
  Findings of_launch;

  std::size_t nodes() const;

  /// Adds the packed reports of the ranks that sent one, and compares the ranks with each other. Errors:
  /// std::runtime_error if a text is not a report.
  void take_reports(std::span<const std::optional<std::string>> reports);
  /// Adds packed findings about the file system. Those of a node's first rank about the output apply to all ranks of
  /// the node.
  void take_file_findings(std::span<const std::optional<std::string>> findings);
};

}  // namespace mylos::app
