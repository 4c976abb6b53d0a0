#pragma once

#include "app/options/arguments.hpp"
#include "core/base/notice.hpp"
#include "core/kernels/attention/attention_proof.hpp"
#include "parallel/launch/launch.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/loop/trainer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

/// Prepares a run of `mylos train` on each of its ranks.
namespace mylos::app {

/// A rank of `mylos train`.
struct TrainRank {
  parallel::Launch& launch;
  parallel::Communicator& ranks;  ///< for host data; launch.world() may be another one after use_communicator
  bool verbose = false;           ///< every rank logs, not only the first

  bool is_first() const { return ranks.rank() == 0; }
  bool logs() const { return is_first() || verbose; }
  /// Returns how this rank's log lines begin.
  std::string speaker() const;
  /// Returns a function that logs a line if this rank logs.
  Notice notice() const;
};

/// A run before its first step.
struct PreparedRun {
  std::unique_ptr<tasks::Task> task;
  std::vector<AttentionProof> attention;  ///< of kernels on the devices of the ranks
  nlohmann::ordered_json resumed;         ///< run.json of the resumed run; null in a new run
  std::size_t free_memory;                ///< bytes that were free before the trainer allocated its memory
  train::Trainer trainer;
};

/// Loads the task and creates the trainer of a run that starts from `checkpoint`, or at step 1 if it is empty. Takes
/// over the settings of the resumed run into `arguments`. Collective, and an error of one rank is thrown on all.
/// Errors: if ranks differ in program, configuration or data; if the data or the settings are not those of the resumed
/// run; those of the task and of the trainer.
PreparedRun prepare_run(const TrainRank& rank, Arguments& arguments, const std::filesystem::path& checkpoint);

}  // namespace mylos::app
