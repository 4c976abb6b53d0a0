#pragma once

#include "train/engine/report.hpp"
#include "train/monitor/event_file.hpp"
#include "train/monitor/gpu_record.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace mylos::train {

/// The tag of the scalar written at the end of a run on GPUs.
inline constexpr const char* energy_tag = "gpu/energy_kwh";

struct Hyperparameter {
  std::string name;
  nlohmann::json value;  ///< a number, boolean or string
};

struct Hyperparameters {
  std::vector<Hyperparameter> all;
  std::vector<std::string> metrics;  ///< tags of the scalars for comparing runs
};

/// Returns the tag of an evaluation's metric: "eval/f1"; for validation_loss "eval/loss".
std::string evaluation_tag(const std::string& metric);
/// Returns the tag of the rate of work: "perf/tokens_per_second" for "tokens".
std::string rate_tag(const std::string& work);

/// Extracts the hyperparameters from a run.json: its options and resolved values, without nulls, objects and arrays.
/// The metrics are those of its evaluations in reverse order, because a task names losses before scores, followed by
/// the loss and speed of training.
Hyperparameters hyperparameters_of(const nlohmann::ordered_json& run);

/// Adds the hyperparameters to `file`; does nothing if there are none. The scalars of the metrics are written
/// elsewhere. With `computes_on_gpus` the GPU energy is an additional metric.
void add_hyperparameters(EventFile& file, const Hyperparameters& configured, bool computes_on_gpus);
/// Records that the run is complete.
void add_session_end(EventFile& file);

/// Writes a run for TensorBoard: train/loss, train/epoch_loss (mean over the epoch's steps, including those before a
/// resume that metrics.jsonl in the same directory has), train/gradient_norm, train/learning_rate, train/loss_scale (if
/// it adapts), eval/<metric>, perf/tokens_per_second (or perf/images_per_second, as named by RunStart::work),
/// perf/memory (bytes), and as written by the nodes gpu/<node>/<index>/utilization, memory_utilization (percent),
/// memory (bytes), power (watts), and node/<node>/cpu (percent), memory and power. The values of each step and
/// evaluation are flushed immediately. Also writes the hyperparameters. Errors: those of LogFile.
class TensorBoard final : public Reporter {
 public:
  /// Creates event_file_name() in the directory `run`.
  explicit TensorBoard(const std::filesystem::path& run, Hyperparameters configured = {}, Notice notice = {});
  /// Writes to `file`; the run is the directory that contains it.
  TensorBoard(const std::filesystem::path& file, EventFile::Clock clock, Hyperparameters configured = {},
              Notice notice = {});

  /// Marks the data of later steps in other files as invalid. If the run begins with an evaluation, also marks the data
  /// of its step, which is then written again from metrics.jsonl.
  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;

  /// Writes the scalars that are known after all nodes have written their last sample: the energy as gpu/energy_kwh
  /// and, if the run `ended`, its completion and the loss of an incomplete epoch. Returns the joules over all starts;
  /// nullopt if no GPU reports them.
  std::optional<double> close(bool ended);
  /// The nodes and GPUs of the run, as of the last point; after close(), over the whole run.
  const GpuFollower& followed() const { return gpus_; }
  /// See LogFile::missing.
  std::string missing() { return file_.missing(); }

 private:
  void write_step(const StepReport& report);
  void write_gpus(std::size_t step);
  void take_earlier_steps(const RunStart& run);
  void write_epoch_loss();

  EventFile file_;
  Hyperparameters configured_;
  WorkKind work_;
  std::filesystem::path metrics_;
  GpuFollower gpus_;
  double gpus_due_ = 0.0;  ///< in seconds since 1970
  std::size_t steps_per_epoch_ = 0, last_step_ = 0;
  double epoch_losses_ = 0.0;    ///< sum over the epoch's steps so far
  std::size_t epoch_steps_ = 0;  ///< number of steps in this sum
  std::size_t epoch_begin_ = 0;  ///< steps before the epoch
};

}  // namespace mylos::train
