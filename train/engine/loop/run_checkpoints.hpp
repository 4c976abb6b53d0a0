#pragma once

#include "nn/optimizer.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "train/engine/loop/loss_scale.hpp"
#include "train/engine/loop/training_scores.hpp"
#include "train/engine/models/best_model.hpp"
#include "train/engine/report.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// Writes a run's checkpoints when they are due, and resumes a run from one.
namespace mylos::train {

/// The progress of a run.
struct RunProgress {
  std::size_t steps = 0;          ///< completed steps, including skipped ones
  std::size_t skipped = 0;        ///< steps that updated nothing
  LossScale loss_scale = {};      ///< for the next step
  double training_seconds = 0.0;  ///< seconds of training steps, over all starts of the run
  bool evaluation_due = false;    ///< the evaluation after these steps has not been done yet
  TrainingScores scores = {};     ///< of the steps since the last evaluation
};

/// The length of a run in steps.
struct RunLength {
  std::size_t steps = 0;  ///< total steps of the run
  std::size_t steps_per_epoch = 0;
};

/// The objects that a checkpoint saves and restores. All must outlive it.
struct SavedParts {
  parallel::Communicator& ranks;
  const ParameterStore& store;
  parallel::ShardingStrategy& strategy;
  nn::Optimizer& optimizer;
  const Task& task;                             ///< its notes are kept beside the checkpoints
  std::span<const std::size_t> writer_of = {};  ///< for each rank, the rank that writes its data; empty: each its own
};

/// The model whose adapters a run trains, and whose values its checkpoints do not have.
struct AdaptedModel {
  static constexpr const char *directory_member = "adapted_model", *checksum_member = "adapted_checksum";

  std::string directory = {};  ///< empty: the model itself is trained
  std::uint64_t checksum = 0;  ///< FilledParameters::adapted_checksum, over all ranks
};

/// Saves and restores checkpoints. Every call but `enabled`, `due`, `due_by_time`, `holds` and `is_elsewhere` is
/// collective, and an error of one rank is thrown on all.
class RunCheckpoints {
 public:
  RunCheckpoints(const SavedParts& parts, const TrainConfig& config, const RunLength& length);

  /// Returns whether this run can write checkpoints: it has an output directory, and the build has HDF5.
  bool enabled() const;
  /// Prepares the directory if this run can write checkpoints; see parallel::prepare_checkpoints. `description` is the
  /// run's configuration as JSON, stored in each checkpoint.
  void prepare(std::string description);

  /// Returns whether a checkpoint is due after `steps` steps by their number. With an interval of any kind, one is due
  /// after the last step, too.
  bool due(std::size_t steps) const;
  /// Returns whether a checkpoint is due by the time since the last one. The first rank's clock decides, because the
  /// clocks of ranks differ; other ranks return false.
  bool due_by_time() const;
  /// Writes a checkpoint. With on_save_error continue a failure is returned in `error` of the report, else it is
  /// thrown. If the output directory belongs to the run no longer, writes to a new directory beside it, and returns the
  /// reason in `loss`.
  CheckpointReport save(const RunProgress& progress, const BestModel& best);
  /// Returns whether a run in this directory would resume after `steps` steps, from a checkpoint that this start wrote
  /// or resumed from.
  bool holds(std::size_t steps) const { return held_ == steps; }

  /// Returns whether a checkpoint was written to another directory than the run's.
  bool is_elsewhere() const { return is_elsewhere_; }
  /// If the output directory belongs to the run no longer, `holds` is false for the checkpoints in it from now on.
  void forget_lost();

  /// Removes the checkpoint after `steps` steps because its weights turned out to be unusable.
  void withdraw(std::size_t steps);

  /// Sets the model whose adapters are trained, before a checkpoint is written or resumed from.
  void set_adapted(AdaptedModel adapted) { adapted_ = std::move(adapted); }
  /// Restores parameters, state, optimizer and `best` from the file that the configuration names. The caller must call
  /// ShardingStrategy::sync_parameters. Errors: name the file and the member that is missing, damaged or from another
  /// run.
  RunProgress resume(BestModel& best);

 private:
  using Clock = std::chrono::steady_clock;

  parallel::CheckpointArrays arrays();
  parallel::CheckpointRecord length_record() const;
  parallel::CheckpointRecord record(const RunProgress& progress, const BestModel& best) const;
  LossScale saved_loss_scale(const parallel::CheckpointRecord& record) const;
  void check_length(const parallel::CheckpointRecord& record) const;
  void check_adapted(const parallel::CheckpointRecord& record) const;
  std::string output_loss() const;
  parallel::SaveReport save_to(const std::filesystem::path& directory, const RunProgress& progress,
                               const BestModel& best, const std::function<void()>& check);
  std::filesystem::path make_directory_elsewhere() const;
  bool is_own(const std::filesystem::path& file) const;
  bool is_newest(const std::filesystem::path& file) const;

  SavedParts parts_;
  const TrainConfig& config_;
  RunLength length_;
  std::string description_;
  AdaptedModel adapted_;
  std::uint64_t saves_ = 0;                ///< number of the last save in the directory
  parallel::FrozenFile frozen_;            ///< of the frozen tensors' values
  std::optional<std::size_t> held_;        ///< steps of the last checkpoint written or resumed from
  std::filesystem::path absolute_output_;  ///< stays valid if the working directory is removed
  bool is_elsewhere_ = false;
  Clock::time_point last_ = Clock::now();  ///< time of the last write, or of the start of the run
};

}  // namespace mylos::train
