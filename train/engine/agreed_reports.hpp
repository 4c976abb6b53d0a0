#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/engine/report.hpp"

#include <exception>
#include <functional>
#include <vector>

namespace mylos::train {

/// Calls the reporters of this rank, if it has any. An exception from a reporter is kept until all ranks agree on it,
/// so that other ranks do not wait in a collective for a failed rank.
class AgreedReports {
 public:
  /// The arguments must outlive this object.
  AgreedReports(parallel::Communicator& ranks, const std::vector<Reporter*>& reporters)
      : ranks_(ranks), reporters_(reporters) {}

  /// Calls `tell` with each reporter of this rank. Does nothing after an error.
  void tell(const std::function<void(Reporter&)>& tell);
  /// Returns the largest signal received by any rank, or 0 if there is none. Collective. Errors: rethrows a reporter's
  /// error on every rank.
  int agree(int signal);

 private:
  parallel::Communicator& ranks_;
  const std::vector<Reporter*>& reporters_;
  std::exception_ptr failure_;
};

}  // namespace mylos::train
