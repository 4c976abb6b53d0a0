#pragma once

#include "parallel/communicator/agreement.hpp"
#include "train/engine/report.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

namespace mylos::train {

/// Requests of a rank that all ranks follow.
struct RankRequests {
  int signal = 0;           ///< the signal to stop for, or 0
  bool checkpoint = false;  ///< whether to save a checkpoint
};

/// Calls the reporters of this rank, if it has any. An exception from a reporter is kept until all ranks agree on it,
/// so that other ranks do not wait in a collective for a failed rank.
class AgreedReports {
 public:
  /// The arguments must outlive this object.
  AgreedReports(parallel::Communicator& ranks, const std::vector<Reporter*>& reporters)
      : ranks_(ranks), reporters_(reporters) {}

  /// Calls `tell` with each reporter of this rank. Does nothing after an error.
  void tell(const std::function<void(Reporter&)>& tell);
  /// Returns the largest signal of any rank, and whether any rank requests a checkpoint. Collective. Errors: rethrows a
  /// reporter's error on every rank.
  RankRequests agree(const RankRequests& own);
  /// Submits the exchange of an agreement on `own` and on reporters' errors so far. end_agreement does not wait for
  /// operations that are submitted in between. Collective.
  void begin_agreement(const RankRequests& own);
  /// Waits for the exchange. Optional: for callers that wait for something else in the same place.
  void wait_for_ranks();
  /// Returns or throws what `agree` does. Waits for the exchange unless wait_for_ranks() did. A rank alone agrees on
  /// `own`, its latest requests. Several ranks agree on what has changed since begin_agreement next time. Collective.
  RankRequests end_agreement(const RankRequests& own);

 private:
  parallel::Communicator& ranks_;
  const std::vector<Reporter*>& reporters_;
  std::exception_ptr failure_;
  std::optional<parallel::PendingMaximum> pending_;  ///< of the signal, or `failed`, and of the checkpoint
  std::vector<std::int64_t> most_;                   ///< result of `pending_`; empty before it is waited for
};

}  // namespace mylos::train
