#pragma once

#include "train/append_file.hpp"
#include "train/report.hpp"

namespace mylos::train {

/// metrics.jsonl: one JSON object a line, for a step {step, epoch, loss, gradient_norm, learning_rate, sequences,
/// tokens, seconds, tokens_per_second, memory, sent (bytes)} and, where a loss scale adapts, {loss_scale, skipped}, for
/// an evaluation {step, every metric, seconds, best}. Numbers
/// that are not finite are null. Errors as AppendFile's.
class MetricsFile final : public Reporter {
 public:
  explicit MetricsFile(std::filesystem::path path) : file_(std::move(path)) {}

  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;

 private:
  AppendFile file_;
};

/// Takes out of a metrics.jsonl what came after `step`, and lines that are none (the last one of a killed run): a run
/// that goes on from there tells it again. Where there is no such file, nothing.
void cut_metrics(const std::filesystem::path& file, std::size_t step);

}  // namespace mylos::train
