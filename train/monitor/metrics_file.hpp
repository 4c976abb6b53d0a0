#pragma once

#include "core/base/process/process.hpp"
#include "train/engine/report.hpp"
#include "train/monitor/log_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace mylos::train {

/// Writes metrics.jsonl, one JSON object per line. A step has {kind, step, epoch, loss, gradient_norm, learning_rate,
/// sequences, tokens, seconds, tokens_per_second, memory, sent (bytes)}; runs that count other work (WorkKind) use
/// other names for sequences, tokens and tokens_per_second. Runs with an adaptive loss scale add {loss_scale, skipped}.
/// StepParts are {data_seconds, and if known exchange_seconds and update_seconds}. An evaluation has {kind, step, every
/// metric, seconds, best}, a completed checkpoint {kind, step, checkpoint (its name), bytes, seconds}. Each line ends
/// with {time}, the time of writing. Numbers that are not finite are null. Errors: those of LogFile.
class MetricsFile final : public Reporter {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970

  explicit MetricsFile(std::filesystem::path path, Clock clock = seconds_since_1970, Notice notice = {})
      : file_(std::move(path), std::move(notice)), clock_(std::move(clock)) {}

  void start(const RunStart& run) override { work_ = run.work; }
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;
  void flush() override { file_.sync(); }
  void checkpoint(const CheckpointReport& report) override;
  /// See LogFile::missing.
  std::string missing() { return file_.missing(); }

 private:
  void append(nlohmann::ordered_json line);

  LogFile file_;
  Clock clock_;
  WorkKind work_;
};

/// Removes the lines of a metrics.jsonl that a run resumed after `step` writes again: those of later steps and, if the
/// evaluation of `step` is still due, those of that evaluation. Also removes incomplete lines, such as the last line of
/// a killed run. Does nothing if the file does not exist.
void cut_metrics(const std::filesystem::path& file, std::size_t step, bool evaluation_due);

}  // namespace mylos::train
