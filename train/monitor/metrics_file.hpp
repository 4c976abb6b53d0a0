#pragma once

#include "core/base/process.hpp"
#include "train/engine/report.hpp"
#include "train/monitor/log_file.hpp"

#include <nlohmann/json.hpp>

#include <functional>

namespace mylos::train {

/// metrics.jsonl: one JSON object a line, for a step {step, epoch, loss, gradient_norm, learning_rate, sequences,
/// tokens, seconds, tokens_per_second, memory, sent (bytes)}, with other names for these three where the run counts
/// other work (WorkKind), where a loss scale adapts {loss_scale, skipped}, and
/// StepParts as {data_seconds, exchange_seconds (where it is known), update_seconds}; for an evaluation {step, every
/// metric, seconds, best}; for a checkpoint that was written {step, checkpoint (its name), bytes, seconds}. Each ends
/// with {time}, when it was written. Numbers that are not finite are null. Errors as LogFile's.
class MetricsFile final : public Reporter {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970

  explicit MetricsFile(std::filesystem::path path, Clock clock = seconds_since_1970, Notice notice = {})
      : file_(std::move(path), std::move(notice)), clock_(std::move(clock)) {}

  void start(const RunStart& run) override { work_ = run.work; }
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;
  void checkpoint(const CheckpointReport& report) override;
  /// LogFile's.
  std::string missing() { return file_.missing(); }

 private:
  void append(nlohmann::ordered_json line);

  LogFile file_;
  Clock clock_;
  WorkKind work_;
};

/// Removes the lines of a metrics.jsonl that a run which goes on after `step` writes again: those of later steps and,
/// where it begins with the evaluation of `step`, that one's. Removes also lines that are not whole, as the last one of
/// a killed run. Does nothing where there is no such file.
void cut_metrics(const std::filesystem::path& file, std::size_t step, bool evaluation_due);

}  // namespace mylos::train
