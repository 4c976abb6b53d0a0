#pragma once

#include "nn/optimizer.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "train/engine/best_model.hpp"
#include "train/engine/loss_scale.hpp"
#include "train/engine/report.hpp"
#include "train/engine/train_config.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

/// A run's checkpoints: when they are due, what is in them, and how a run goes on from one.
namespace mylos::train {

/// Where a run is.
struct RunProgress {
  std::size_t steps = 0;          ///< done, with those that updated nothing,
  std::size_t skipped = 0;        ///< which are so many
  LossScale loss_scale = {};      ///< for the next step
  double training_seconds = 0.0;  ///< of steps, over all starts of the run
  bool evaluation_due = false;    ///< the evaluation after these steps is still to be done
};

/// What decides the length of a run, beside its data and options.
struct RunLength {
  std::size_t steps = 0;  ///< of the whole run
  std::size_t steps_per_epoch = 0;
};

/// What a checkpoint takes from and gives back to; all outlive it.
struct SavedParts {
  parallel::Communicator& ranks;
  const ParameterStore& store;
  parallel::ShardingStrategy& mode;
  nn::Optimizer& optimizer;
  std::vector<std::size_t> writer_of;  ///< for each rank the one that writes what it saves
};

/// Every call but `enabled` and `writers` is collective, and an error of one rank is one of all.
class RunCheckpoints {
 public:
  RunCheckpoints(const SavedParts& parts, const TrainConfig& config, const RunLength& length);

  /// Ranks that write one.
  std::size_t writers() const;

  /// Whether this run can write any: it has an output directory, and the build has HDF5.
  bool enabled() const;
  /// Makes the directory ready, if this run can write checkpoints; see parallel::prepare_checkpoints. `description` is
  /// the run's configuration as JSON, which each of them keeps.
  void prepare(std::string description);

  /// Whether one is due after `steps` steps. With an interval the run's last step has one, too.
  bool due(std::size_t steps);
  /// Writes one. With on_save_error continue a failure is in the report's `error`, else it is thrown.
  CheckpointReport save(const RunProgress& progress, const BestModel& best);
  /// Whether a run in this directory would go on after `steps` steps: from a checkpoint that this start has written, or
  /// that it goes on from.
  bool holds(std::size_t steps) const { return held_ == steps; }

  /// Removes the checkpoint after `steps` steps, whose weights turned out to be of no use.
  void withdraw(std::size_t steps);

  /// Puts parameters, state, optimizer and `best` back as they were in the file that the configuration resumes from.
  /// The caller publishes the parameters. Errors: the file and the member that is missing, damaged or of another run.
  RunProgress resume(BestModel& best);

 private:
  using Clock = std::chrono::steady_clock;

  parallel::CheckpointArrays arrays() const;
  parallel::CheckpointRecord length_record() const;
  parallel::CheckpointRecord record(const RunProgress& progress, const BestModel& best) const;
  LossScale saved_loss_scale(const parallel::CheckpointRecord& record) const;
  void check_length(const parallel::CheckpointRecord& record) const;
  bool is_own(const std::filesystem::path& file) const;
  bool is_newest(const std::filesystem::path& file) const;

  SavedParts parts_;
  const TrainConfig& config_;
  RunLength length_;
  std::string description_;
  std::optional<std::size_t> held_;        ///< steps of the last one that was written, or resumed from
  Clock::time_point last_ = Clock::now();  ///< when the last one was written, or the run began
};

}  // namespace mylos::train
