#pragma once

#include "app/doctor/doctor_checks.hpp"
#include "parallel/launch/rank_runtime.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

/// The first rank collects the reports of all ranks, some of which may hang or die.
namespace mylos::app {

/// Every rank must call the same functions in the same order. Every wait has a time limit.
class DoctorRanks {
 public:
  /// `limit`: seconds that the first rank waits for the others. The others wait longer for the first rank.
  DoctorRanks(parallel::RankRuntime& runtime, double limit);

  bool is_first() const { return runtime_.rank() == 0; }
  /// Gathers `mine`. On rank 0, returns one entry per rank (nullopt on timeout); on other ranks, an empty vector.
  std::vector<std::optional<std::string>> collect(const std::string& mine);
  /// Broadcasts the text of the first rank; returns nullopt on timeout.
  std::optional<std::string> broadcast(const std::string& text);
  /// On the first rank, returns the clock offset of each other rank that answers; on other ranks, an empty vector.
  std::vector<ClockOffset> compare_clocks();
  /// On the first rank, returns the ranks that timed out; later calls skip them.
  const std::set<std::size_t>& missing() const { return missing_; }

 private:
  using Seconds = std::chrono::duration<double>;

  std::optional<ClockOffset> ask_clock(std::size_t rank);
  void answer_clock();

  parallel::RankRuntime& runtime_;
  Seconds limit_, limit_for_first_;
  std::set<std::size_t> missing_;
};

/// Findings are sent between ranks as text, without values that are infinite or no number.
std::string pack(RankReport report);
std::string pack(Findings findings);

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
