#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Metrics of an evaluation.
namespace mylos::train {

/// Describes a metric.
struct MetricKind {
  std::string name;       ///< key in metrics.jsonl: "validation_loss"
  std::string title;      ///< title for display: "Validation loss"
  std::string unit = {};  ///< "%"; empty if it has none
  bool larger_is_better = true;
};

/// The metric of training that every task has: the mean loss of the steps since the last evaluation.
inline constexpr const char* training_loss_name = "training_loss";
/// The names of the metrics of training begin with this.
inline constexpr std::string_view training_prefix = "training_";

/// Named metrics in display order.
using Metrics = std::vector<std::pair<std::string, double>>;

/// Returns the metric called `name`, or null if there is none.
const double* find_metric(const Metrics& metrics, const std::string& name);

/// Returns the kind called `name`, or null if there is none.
const MetricKind* find_kind(std::span<const MetricKind> kinds, const std::string& name);

/// Returns the title of the metric called `name`: that of its kind if it has one, else the name itself: "Validation
/// loss" for validation_loss.
std::string metric_title(std::span<const MetricKind> kinds, const std::string& name);

/// Returns the first three metrics and those of training as text: "validation loss 1.2346, exact 40, f1 50.125,
/// training loss 1.1". Tasks list the most important metrics first.
std::string metrics_text(const Metrics& metrics);

}  // namespace mylos::train
