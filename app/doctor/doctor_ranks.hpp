#pragma once

#include "parallel/launch/rank_runtime.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

/// Collects findings on the first rank from ranks that may hang or die. Every wait has a time limit.
namespace mylos::app {

/// The clock of a rank relative to that of the first rank.
struct ClockOffset {
  std::size_t rank = 0;
  double ahead = 0.0;        ///< seconds
  double uncertainty = 0.0;  ///< seconds; half of a round trip
};

/// Every rank must call the same functions in the same order.
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

}  // namespace mylos::app
