#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

/// Results of an evaluation.
namespace mylos::train {

/// Describes a metric.
struct MetricKind {
  std::string name;       ///< as metrics.jsonl has it: "validation_loss"
  std::string title;      ///< for people: "Validation loss"
  std::string unit = {};  ///< "%"; empty where it has none
  bool larger_is_better = true;
};

/// Named results of an evaluation, in the order they are shown.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The metric called `name`, or nothing.
const double* find_metric(const Metrics& metrics, const std::string& name);

/// The kind called `name`; null where there is none.
const MetricKind* find_kind(std::span<const MetricKind> kinds, const std::string& name);

/// The title of the metric called `name`: that of its kind or, where there is none, "Validation loss" of
/// validation_loss.
std::string metric_title(std::span<const MetricKind> kinds, const std::string& name);

/// "validation loss 1.2346, exact 40, f1 50.125": the first three, which a task puts first because they matter most.
std::string metrics_text(const Metrics& metrics);

}  // namespace mylos::train
