#include "app/report/compared_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"
#include "core/base/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view percent = "%", baseline_name = "baseline (other program)";

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

/// Returns the name of the run in the middle: by the total time of those that have one, else by the training time.
std::string median_run_of(const ComparedSetting& setting) {
  const bool has_total = std::ranges::any_of(setting.runs, [](const auto& run) { return run.total_seconds > 0.0; });
  const auto figure = has_total ? &ComparedRun::total_seconds : &ComparedRun::training_seconds;
  std::vector<const ComparedRun*> runs;
  for (const ComparedRun& run : setting.runs) {
    if (std::isfinite(run.*figure)) runs.push_back(&run);
  }
  if (runs.empty()) return {};
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>((runs.size() - 1) / 2);
  std::ranges::nth_element(runs, middle, {}, [&](const ComparedRun* run) { return run->*figure; });
  return (*middle)->name;
}

/// `baseline` must have runs if `setting` has any.
ComparisonLine line_of(const ComparedSetting& setting, const ComparedSetting& baseline,
                       std::optional<double> baseline_seconds) {
  ComparisonLine line{
      .mode = setting.mode, .ranks = setting.ranks, .repeats = setting.runs.size(), .nodes = setting.nodes};
  if (setting.runs.empty()) {
    line.failure = setting.failure;
    return line;
  }
  const ComparedRun& first = setting.runs.front();
  line.kept = static_cast<std::size_t>(
      std::ranges::count_if(setting.runs, [](const ComparedRun& run) { return std::isnan(run.total_seconds); }));
  line.work = first.work;
  line.nodes = first.nodes;
  line.median_run = median_run_of(setting);
  line.total_seconds = median_of(setting, &ComparedRun::total_seconds);
  line.training_seconds = median_of(setting, &ComparedRun::training_seconds);
  line.epoch_seconds = median_of(setting, &ComparedRun::epoch_seconds);
  line.rate = median_of(setting, &ComparedRun::rate);
  line.memory = median_of(setting, &ComparedRun::memory);
  line.sent = median_of(setting, &ComparedRun::sent);
  line.loss = median_of(setting, &ComparedRun::loss);
  if (baseline_seconds) {
    line.speedup = *baseline_seconds / line.total_seconds;
    line.efficiency = *line.speedup / static_cast<double>(setting.ranks);
  } else if (first.work == baseline.runs.front().work) {
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
  if (line.nodes > 0) object["nodes"] = line.nodes;
  if (line.repeats == 0) {
    object["failure"] = line.failure;
    return object;
  }
  object["repeats"] = line.repeats;
  if (!line.median_run.empty()) object["median_run"] = line.median_run;
  if (line.kept > 0) object["kept"] = line.kept;
  if (std::isfinite(line.total_seconds)) object["total_seconds"] = line.total_seconds;
  object["training_seconds"] = line.training_seconds;
  if (std::isfinite(line.epoch_seconds)) object["epoch_seconds"] = line.epoch_seconds;
  object[train::rate_key(line.work)] = line.rate;
  if (line.speedup && std::isfinite(*line.speedup)) object["speedup"] = *line.speedup;
  if (line.efficiency && std::isfinite(*line.efficiency)) object["efficiency"] = *line.efficiency;
  object["memory"] = line.memory;
  object["sent_per_step"] = line.sent;
  object["loss"] = line.loss;
  for (const auto& [name, value] : line.metrics) {
    if (!object.contains(name)) object[name] = value;
  }
  return object;
}

/// A column of the table of `mylos compare`.
struct Column {
  std::string heading;
  std::size_t least_width;  ///< in text
  std::function<std::string(const ComparisonLine&)> cell;
};

std::string decimal_cell(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string count_cell(std::size_t count) { return count > 0 ? std::to_string(count) : "-"; }

/// Returns the columns before the figures of runs.
std::vector<Column> setting_columns() {
  return {{"mode", 18, [](const ComparisonLine& line) { return line.mode; }},
          {"nodes", 5, [](const ComparisonLine& line) { return count_cell(line.nodes); }},
          {"ranks", 5, [](const ComparisonLine& line) { return count_cell(line.ranks); }}};
}

/// Returns the columns of the figures of runs. `work` heads the column of rates; a line with another unit of work has
/// none there.
std::vector<Column> figure_columns(const std::vector<train::MetricKind>& metrics, const std::string& work) {
  constexpr double mebibyte = 1u << 20, minute = 60.0;
  const auto fixed = [](double ComparisonLine::*figure, double unit, int decimals) {
    return [=](const ComparisonLine& line) { return decimal_cell(line.*figure / unit, decimals); };
  };
  const auto ratio = [](std::optional<double> ComparisonLine::*figure) {
    return [=](const ComparisonLine& line) { return decimal_cell((line.*figure).value_or(unknown_figure), 2); };
  };
  std::vector<Column> columns = {
      {"total min", 9, fixed(&ComparisonLine::total_seconds, minute, 2)},
      {"training s", 11, fixed(&ComparisonLine::training_seconds, 1.0, 1)},
      {"epoch s", 9, fixed(&ComparisonLine::epoch_seconds, 1.0, 1)},
      {work + "/s", 9,
       [work](const ComparisonLine& line) { return line.work == work ? decimal_cell(line.rate, 0) : "-"; }},
      {"speedup", 8, ratio(&ComparisonLine::speedup)},
      {"efficiency", 10, ratio(&ComparisonLine::efficiency)},
      {"MiB a rank", 11, fixed(&ComparisonLine::memory, mebibyte, 0)},
      {"sent MiB", 11, fixed(&ComparisonLine::sent, mebibyte, 2)},
      {"loss", 10, fixed(&ComparisonLine::loss, 1.0, 6)},
  };
  for (const train::MetricKind& kind : metrics) {
    columns.push_back({column_heading(kind), 7,
                       [kind](const ComparisonLine& line) { return metric_value_text(kind, line.metric(kind.name)); }});
  }
  columns.push_back(
      {"median run", 10, [](const ComparisonLine& line) { return line.median_run.empty() ? "-" : line.median_run; }});
  return columns;
}

/// Returns the cells of a row; the failure of a line stands in place of its figures.
std::vector<std::string> cells_of(const ComparisonLine& line, std::span<const Column> settings,
                                  std::span<const Column> figures) {
  std::vector<std::string> cells;
  for (const Column& column : settings) cells.push_back(column.cell(line));
  if (!line.failure.empty()) {
    cells.push_back(line.failure);
    return cells;
  }
  for (const Column& column : figures) cells.push_back(column.cell(line));
  return cells;
}

}  // namespace

ComparedRun compared_run(const train::RunRecord& record) {
  require(!record.steps.empty(), "compared_run: no steps");
  ComparedRun run{.work = record.work(), .kinds = record.score_kinds()};
  const Json resolved = record.run.value("resolved", Json::object());
  const auto count = [&](const char* name) {
    const double value = train::number_of(resolved, name);
    return value > 0.0 ? static_cast<std::size_t>(value) : 0;
  };
  run.nodes = count("nodes");
  run.ranks = count("ranks");
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

std::vector<ComparisonLine> comparison_lines(const std::vector<ComparedSetting>& settings,
                                             std::optional<double> baseline_seconds) {
  const ComparedSetting* const baseline = baseline_of(settings);
  std::vector<ComparisonLine> lines;
  for (const ComparedSetting& setting : settings) {
    lines.push_back(line_of(setting, baseline == nullptr ? setting : *baseline, baseline_seconds));
  }
  return lines;
}

OrderedJson comparison_json(const std::vector<ComparedSetting>& settings, std::optional<double> baseline_seconds) {
  OrderedJson lines = OrderedJson::array();
  for (const ComparisonLine& line : comparison_lines(settings, baseline_seconds)) lines.push_back(line_json(line));
  return lines;
}

std::string comparison_table(const std::vector<ComparedSetting>& settings, TableFormat format,
                             std::optional<double> baseline_seconds) {
  const std::vector<Column> first = setting_columns();
  const std::vector<Column> figures =
      figure_columns(compared_metrics(settings), common_work(settings).value_or("work"));
  TextTable table;
  for (const std::span<const Column> part : {std::span(first), std::span(figures)}) {
    for (const Column& each : part) table.columns.push_back({each.heading, each.least_width});
  }
  std::vector<ComparisonLine> lines = comparison_lines(settings, baseline_seconds);
  if (baseline_seconds) {
    lines.insert(lines.begin(), {.mode = std::string(baseline_name),
                                 .ranks = 1,
                                 .total_seconds = *baseline_seconds,
                                 .speedup = 1.0,
                                 .efficiency = 1.0});
  }
  for (const ComparisonLine& line : lines) table.rows.push_back(cells_of(line, first, figures));
  return table_text(table, format);
}

}  // namespace mylos::app
