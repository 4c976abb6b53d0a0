#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/engine/report.hpp"

#include <exception>
#include <functional>
#include <vector>

namespace mylos::train {

/// The reporters of each rank, none or several. What one of them throws is kept until all ranks agree, so that the
/// others do not wait in a collective for a rank that ended.
class AgreedReports {
 public:
  /// All outlive it.
  AgreedReports(parallel::Communicator& ranks, const std::vector<Reporter*>& reporters)
      : ranks_(ranks), reporters_(reporters) {}

  /// Calls `tell` with each reporter of this rank; with none after an error.
  void tell(const std::function<void(Reporter&)>& tell);
  /// Collective. The largest signal that came to a rank, 0 where none did. Errors: that of a reporter, on every rank.
  int agree(int signal);

 private:
  parallel::Communicator& ranks_;
  const std::vector<Reporter*>& reporters_;
  std::exception_ptr failure_;
};

}  // namespace mylos::train
