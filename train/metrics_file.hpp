#pragma once

#include "train/append_file.hpp"
#include "train/report.hpp"

namespace mylos::train {

/// metrics.jsonl: one JSON object a line, for a step {step, epoch, loss, gradient_norm, learning_rate, sequences,
/// tokens, seconds, tokens_per_second, memory (bytes)}, for an evaluation {step, every metric, seconds, best}. Numbers
/// that are not finite are null. Errors as AppendFile's.
class MetricsFile final : public Reporter {
 public:
  explicit MetricsFile(std::filesystem::path path) : file_(std::move(path)) {}

  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;

 private:
  AppendFile file_;
};

}  // namespace mylos::train
