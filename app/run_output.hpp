#pragma once

#include "parallel/communicator.hpp"
#include "train/output_directory.hpp"

#include <functional>
#include <optional>

namespace mylos::app {

/// The directory of a run on several ranks: the first one alone looks at it and writes into it. Every call is
/// collective; errors are those of train::OutputDirectory, on every rank.
class RunOutput {
 public:
  RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules);

  /// A finished run is there.
  bool finished() const { return finished_; }
  /// The checkpoint that the run goes on from; empty where it begins at step 1.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
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
  std::filesystem::path checkpoint_;
  bool finished_ = false;
};

}  // namespace mylos::app
