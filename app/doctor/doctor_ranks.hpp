#pragma once

#include "parallel/launch/rank_runtime.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

/// How ranks that may hang, or end, tell the first one what they found. No wait is without an end.
namespace mylos::app {

/// A rank's clock beside the first rank's.
struct ClockOffset {
  std::size_t rank = 0;
  double ahead = 0.0;        ///< seconds
  double uncertainty = 0.0;  ///< seconds by which that may be wrong: half of a round trip
};

/// Every rank calls the same functions in the same order.
class DoctorRanks {
 public:
  /// `limit`: seconds that the first rank waits for the others; they wait longer for it.
  DoctorRanks(parallel::RankRuntime& runtime, double limit);

  bool is_first() const { return runtime_.rank() == 0; }
  /// On the first rank what each one gave, in order, nothing of those that did not come in time; on the others nothing.
  std::vector<std::optional<std::string>> collect(const std::string& mine);
  /// What the first rank gave; nothing where that does not come in time.
  std::optional<std::string> tell(const std::string& text);
  /// On the first rank, of each of the others that is there.
  std::vector<ClockOffset> compare_clocks();
  /// On the first rank: those that did not come; they are not waited for again.
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
