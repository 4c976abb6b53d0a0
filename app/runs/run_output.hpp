#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/monitor/output_directory.hpp"

#include <functional>
#include <optional>

namespace mylos::app {

/// Calls `decide` on the first rank, and returns its result on every rank. Collective; errors are those of `decide`.
train::OutputStart agreed_start(parallel::Communicator& ranks, const std::function<train::OutputStart()>& decide);

/// The directory of a run on several ranks: the first one alone looks at it and writes into it. Every call is
/// collective; errors are those of train::OutputDirectory, on every rank.
class RunOutput {
 public:
  RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules);

  const train::OutputStart& start() const { return start_; }
  /// On the first rank.
  void use(const std::function<void(train::OutputDirectory&)>& use);
  /// Calls `work`; an error of the first rank is also written down for those who only see the run's files. Collective
  /// only as far as `work` is.
  void tell_failure(const std::function<void()>& work);

  /// Of the first rank; null on the others.
  const train::OutputDirectory* directory() const { return directory_ ? &*directory_ : nullptr; }

 private:
  parallel::Communicator& ranks_;
  std::optional<train::OutputDirectory> directory_;
  train::OutputStart start_;
};

}  // namespace mylos::app
