#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/monitor/output_directory.hpp"

#include <functional>
#include <optional>

namespace mylos::app {

/// Calls `decide` on the first rank and returns its result on every rank. Collective. Errors: those of `decide`.
train::OutputStart agreed_start(parallel::Communicator& ranks, const std::function<train::OutputStart()>& decide);

/// The output directory of a run on several ranks. Only the first rank reads and writes it. Every call is collective.
/// Errors: those of train::OutputDirectory, on every rank.
class RunOutput {
 public:
  RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules);

  const train::OutputStart& start() const { return start_; }
  /// Calls `use` on the first rank.
  void use(const std::function<void(train::OutputDirectory&)>& use);
  /// Calls `work`. An error of the first rank is also recorded in the run's files, for readers who see only these.
  /// Collective if `work` is.
  void report_failure(const std::function<void()>& work);

  /// Returns the directory on the first rank; null on the others.
  const train::OutputDirectory* directory() const { return directory_ ? &*directory_ : nullptr; }

 private:
  parallel::Communicator& ranks_;
  std::optional<train::OutputDirectory> directory_;
  train::OutputStart start_;
};

}  // namespace mylos::app
