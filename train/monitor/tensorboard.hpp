#pragma once

#include "train/engine/report.hpp"
#include "train/monitor/event_file.hpp"
#include "train/monitor/gpu_follower.hpp"
#include "train/monitor/hyperparameters.hpp"

namespace mylos::train {

/// A run for TensorBoard: train/loss, train/epoch_loss (mean of the epoch's steps; where the
/// run goes on inside an epoch, with those before that metrics.jsonl beside it has), train/gradient_norm,
/// train/learning_rate, train/loss_scale (where one adapts), eval/<metric>, perf/tokens_per_second
/// (or perf/images_per_second: what RunStart::work names), perf/memory
/// (bytes), and gpu/<node>/<index>/utilization (percent), memory (bytes) and power (watts) as the nodes have written
/// them; each step's and evaluation's flushed at once. Its hyperparameters, too. Errors as LogFile's.
class TensorBoard final : public Reporter {
 public:
  /// Makes event_file_name() in the directory `run`.
  explicit TensorBoard(const std::filesystem::path& run, Hyperparameters told = {}, Notice notice = {});
  /// Of the run in the directory that `file` is in.
  TensorBoard(const std::filesystem::path& file, EventFile::Clock clock, Hyperparameters told = {}, Notice notice = {});

  /// Says that what other files hold of later steps is void; where the run begins with an evaluation, also of its step,
  /// which is written again from metrics.jsonl.
  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;

  /// What is known when all nodes have written their last sample: energy, as gpu/energy_kwh, and whether the run came
  /// to its end, then with the loss of an epoch that is not whole. Gives the joules of all starts; nothing where no GPU
  /// tells.
  std::optional<double> close(bool ended);
  /// LogFile's.
  std::string missing() { return file_.missing(); }

 private:
  void write_step(const StepReport& report);
  void write_gpus(std::size_t step);
  void take_earlier_steps(const RunStart& run);
  void write_epoch_loss();

  EventFile file_;
  Hyperparameters told_;
  WorkKind work_;
  std::filesystem::path metrics_;
  GpuFollower gpus_;
  double gpus_due_ = 0.0;  ///< seconds since 1970
  std::size_t steps_per_epoch_ = 0, last_step_ = 0;
  double epoch_losses_ = 0.0;    ///< sum over the epoch's steps so far
  std::size_t epoch_steps_ = 0;  ///< of these
  std::size_t epoch_begin_ = 0;  ///< steps before the epoch
};

}  // namespace mylos::train
