#include "app/report/compared_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"
#include "core/base/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view percent = "%";
constexpr std::size_t least_rate_width = 9, least_metric_width = 7;  // columns of text

/// Returns the median of the finite values; NaN if there are none.
double middle_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return unknown_figure;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double median_of(const ComparedSetting& setting, double ComparedRun::*figure) {
  std::vector<double> values;
  for (const ComparedRun& run : setting.runs) values.push_back(run.*figure);
  return middle_of(std::move(values));
}

/// Returns the setting that speedups are relative to: the first one on the fewest ranks. Null if no run succeeded.
const ComparedSetting* baseline_of(const std::vector<ComparedSetting>& settings) {
  const ComparedSetting* baseline = nullptr;
  for (const ComparedSetting& setting : settings) {
    if (!setting.runs.empty() && (baseline == nullptr || setting.ranks < baseline->ranks)) baseline = &setting;
  }
  return baseline;
}

/// Returns the median over the repeats that have the metric as a finite number.
std::optional<double> score_of(const ComparedSetting& setting, const std::string& name) {
  std::vector<double> values;
  for (const ComparedRun& run : setting.runs) {
    const double* const value = train::find_metric(run.metrics, name);
    if (value != nullptr) values.push_back(*value);
  }
  const double middle = middle_of(std::move(values));
  return std::isfinite(middle) ? std::optional(middle) : std::nullopt;
}

/// Returns the metrics of a run that have a column.
std::span<const train::MetricKind> scores_of(const ComparedRun& run) {
  return std::span(run.kinds).subspan(run.kinds.size() > 1 ? 1 : 0);
}

/// `baseline` must have runs if `setting` has any.
ComparisonLine line_of(const ComparedSetting& setting, const ComparedSetting& baseline) {
  ComparisonLine line{.mode = setting.mode, .ranks = setting.ranks, .repeats = setting.runs.size()};
  if (setting.runs.empty()) {
    line.failure = setting.failure;
    return line;
  }
  const ComparedRun& first = setting.runs.front();
  line.kept = static_cast<std::size_t>(
      std::ranges::count_if(setting.runs, [](const ComparedRun& run) { return std::isnan(run.total_seconds); }));
  line.work = first.work;
  line.total_seconds = median_of(setting, &ComparedRun::total_seconds);
  line.training_seconds = median_of(setting, &ComparedRun::training_seconds);
  line.epoch_seconds = median_of(setting, &ComparedRun::epoch_seconds);
  line.rate = median_of(setting, &ComparedRun::rate);
  line.memory = median_of(setting, &ComparedRun::memory);
  line.sent = median_of(setting, &ComparedRun::sent);
  line.loss = median_of(setting, &ComparedRun::loss);
  if (first.work == baseline.runs.front().work) {
    line.speedup = line.rate / median_of(baseline, &ComparedRun::rate);
    line.efficiency = *line.speedup * static_cast<double>(baseline.ranks) / static_cast<double>(setting.ranks);
  }
  for (const train::MetricKind& kind : scores_of(first)) {
    if (train::find_metric(line.metrics, kind.name) != nullptr) continue;
    if (const auto score = score_of(setting, kind.name)) line.metrics.emplace_back(kind.name, *score);
  }
  return line;
}

OrderedJson line_json(const ComparisonLine& line) {
  OrderedJson object = {{"mode", line.mode}, {"ranks", line.ranks}};
  if (line.repeats == 0) {
    object["failure"] = line.failure;
    return object;
  }
  object["repeats"] = line.repeats;
  if (line.kept > 0) object["kept"] = line.kept;
  if (std::isfinite(line.total_seconds)) object["total_seconds"] = line.total_seconds;
  object["training_seconds"] = line.training_seconds;
  if (std::isfinite(line.epoch_seconds)) object["epoch_seconds"] = line.epoch_seconds;
  object[train::rate_key(line.work)] = line.rate;
  if (line.speedup) object["speedup"] = *line.speedup;
  if (line.efficiency) object["efficiency"] = *line.efficiency;
  object["memory"] = line.memory;
  object["sent_per_step"] = line.sent;
  object["loss"] = line.loss;
  for (const auto& [name, value] : line.metrics) {
    if (!object.contains(name)) object[name] = value;
  }
  return object;
}

/// Returns the width of a column in the table of `mylos compare`.
std::size_t width_of(const std::string& heading, std::size_t least) { return std::max(heading.size(), least); }

std::string seconds_text(double seconds) { return std::isfinite(seconds) ? fmt::format("{:.1f}", seconds) : "-"; }

std::string ratio_text(const std::optional<double>& ratio) { return ratio ? fmt::format("{:.2f}", *ratio) : "-"; }

/// Returns the figures of a line. `work` heads the column of rates; a line with another unit of work has none there.
std::string figures_text(const ComparisonLine& line, const std::vector<train::MetricKind>& metrics,
                         const std::string& work) {
  constexpr double mebibyte = 1u << 20;
  std::string text = fmt::format(
      "{:>9} {:>11.1f} {:>9} {:>{}} {:>8} {:>10} {:>11.0f} {:>11.2f} {:>10.6f}", seconds_text(line.total_seconds),
      line.training_seconds, seconds_text(line.epoch_seconds),
      line.work == work ? fmt::format("{:.0f}", line.rate) : "-", width_of(work + "/s", least_rate_width),
      ratio_text(line.speedup), ratio_text(line.efficiency), line.memory / mebibyte, line.sent / mebibyte, line.loss);
  for (const train::MetricKind& kind : metrics) {
    text += fmt::format(" {:>{}}", metric_value_text(kind, line.metric(kind.name)),
                        width_of(column_heading(kind), least_metric_width));
  }
  return text;
}

}  // namespace

ComparedRun compared_run(const train::RunRecord& record) {
  require(!record.steps.empty(), "compared_run: no steps");
  ComparedRun run{.work = record.work(), .kinds = record.metric_kinds()};
  std::vector<double> rates, step_seconds;
  double work = 0.0;
  for (const Json& step : record.steps) {
    const double seconds = train::number_of(step, "seconds"), done = train::number_of(step, run.work.c_str());
    run.memory = std::fmax(run.memory, train::number_of(step, "memory"));
    run.sent += train::number_of(step, "sent") / static_cast<double>(record.steps.size());
    if (std::isfinite(seconds)) {
      run.training_seconds += seconds;
      step_seconds.push_back(seconds);
    }
    if (!std::isfinite(done / seconds)) continue;
    rates.push_back(done / seconds);
    work += done;
  }
  run.mean_rate = work / run.training_seconds;
  if (const std::size_t steps = record.steps_per_epoch(); steps > 0) {
    run.epoch_seconds = middle_of(std::move(step_seconds)) * static_cast<double>(steps);
  }
  run.rate = middle_of(std::move(rates));
  run.loss = train::number_of(record.steps.back(), "loss");
  for (const train::MetricKind& kind : run.kinds) {
    const char* const name = kind.name.c_str();
    const auto last = std::ranges::find_if(record.evaluations.rbegin(), record.evaluations.rend(),
                                           [name](const Json& row) { return row.contains(name); });
    if (last != record.evaluations.rend()) run.metrics.emplace_back(kind.name, train::number_of(*last, name));
  }
  return run;
}

std::string failure_reason(const std::string& errors) {
  constexpr std::string_view own = "mylos: error: ";
  constexpr std::size_t shortest_frame = 20;
  std::string_view framed;
  bool is_in_frame = false;
  for (const std::string_view line : split_lines(errors)) {
    if (line.starts_with(own)) return std::string(line.substr(own.size()));
    const bool is_frame = line.size() >= shortest_frame && line.find_first_not_of('-') == std::string_view::npos;
    if (is_in_frame && framed.empty() && !is_frame) framed = line;
    is_in_frame = is_in_frame || is_frame;
  }
  return framed.empty() ? last_line(errors) : std::string(framed);
}

std::vector<train::MetricKind> compared_metrics(const std::vector<ComparedSetting>& settings) {
  std::vector<train::MetricKind> all;
  for (const ComparedSetting& setting : settings) {
    for (const ComparedRun& run : setting.runs) {
      for (const train::MetricKind& kind : scores_of(run)) {
        if (train::find_kind(all, kind.name) == nullptr) all.push_back(kind);
      }
    }
  }
  return all;
}

std::string column_heading(const train::MetricKind& kind) {
  const bool has_short_title = !kind.title.empty() && kind.title.size() <= kind.name.size();
  const std::string& heading = has_short_title ? kind.title : kind.name;
  return kind.unit.empty() || kind.unit == percent ? heading : heading + " " + kind.unit;
}

std::string metric_value_text(const train::MetricKind& kind, double value) {
  if (!std::isfinite(value)) return "-";
  return kind.unit == percent ? fmt::format("{:.2f}", value) : fmt::format("{:.5g}", value);
}

std::optional<std::string> common_work(const std::vector<ComparedSetting>& settings) {
  std::optional<std::string> common;
  for (const ComparedSetting& setting : settings) {
    for (const ComparedRun& run : setting.runs) {
      if (common.value_or(run.work) != run.work) return std::nullopt;
      common = run.work;
    }
  }
  return common.value_or(ComparedRun().work);
}

double ComparisonLine::metric(const std::string& name) const {
  const double* const value = train::find_metric(metrics, name);
  return value == nullptr ? std::nan("") : *value;
}

std::vector<ComparisonLine> comparison_lines(const std::vector<ComparedSetting>& settings) {
  const ComparedSetting* const baseline = baseline_of(settings);
  std::vector<ComparisonLine> lines;
  for (const ComparedSetting& setting : settings) {
    lines.push_back(line_of(setting, baseline == nullptr ? setting : *baseline));
  }
  return lines;
}

OrderedJson comparison_json(const std::vector<ComparedSetting>& settings) {
  OrderedJson lines = OrderedJson::array();
  for (const ComparisonLine& line : comparison_lines(settings)) lines.push_back(line_json(line));
  return lines;
}

std::string comparison_table(const std::vector<ComparedSetting>& settings) {
  const std::vector<train::MetricKind> metrics = compared_metrics(settings);
  const std::string work = common_work(settings).value_or("work"), rate = work + "/s";
  std::string table = fmt::format("{:<18} {:>5} {:>9} {:>11} {:>9} {:>{}} {:>8} {:>10} {:>11} {:>11} {:>10}", "mode",
                                  "ranks", "total s", "training s", "epoch s", rate, width_of(rate, least_rate_width),
                                  "speedup", "efficiency", "MiB a rank", "sent MiB", "loss");
  for (const train::MetricKind& kind : metrics) {
    const std::string heading = column_heading(kind);
    table += fmt::format(" {:>{}}", heading, width_of(heading, least_metric_width));
  }
  table += '\n';
  for (const ComparisonLine& line : comparison_lines(settings)) {
    table += fmt::format("{:<18} {:>5} {}\n", line.mode, line.ranks,
                         line.repeats == 0 ? line.failure : figures_text(line, metrics, work));
  }
  return table;
}

}  // namespace mylos::app
