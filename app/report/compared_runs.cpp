#include "app/report/compared_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/process/subprocess.hpp"

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

/// Returns the median over the repeats that have the figure.
double median_of(const ComparedSetting& setting, const std::function<double(const ComparedRun&)>& figure) {
  std::vector<double> values;
  for (const ComparedRun& run : setting.runs) values.push_back(figure(run));
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

/// A figure of a line: its key in JSON, and its column.
struct Figure {
  double ComparisonLine::*value;
  const char *key, *heading;  ///< null: those of the work per second
  std::size_t least_width;    ///< in text
  double unit;                ///< of the column
  int decimals;               ///< in the column
  bool is_left_out = false;   ///< in JSON, if it is unknown; else null
};
constexpr double one_mib = 1u << 20, one_minute = 60.0;
constexpr Figure figures[] = {
    {&ComparisonLine::total_seconds, "total_seconds", "total min", 9, one_minute, 2, true},
    {&ComparisonLine::training_seconds, "training_seconds", "training s", 11, 1.0, 1},
    {&ComparisonLine::epoch_seconds, "epoch_seconds", "epoch s", 9, 1.0, 1, true},
    {&ComparisonLine::rate, nullptr, nullptr, 9, 1.0, 0},
    {&ComparisonLine::speedup, "speedup", "speedup", 8, 1.0, 2, true},
    {&ComparisonLine::efficiency, "efficiency", "efficiency", 10, 1.0, 2, true},
    {&ComparisonLine::memory, "memory", "MiB a rank", 11, one_mib, 0},
    {&ComparisonLine::sent, "sent_per_step", "sent MiB", 11, one_mib, 2},
    {&ComparisonLine::loss, "loss", "loss", 10, 1.0, 6},
};

/// `baseline` must have runs if `setting` has any.
ComparisonLine line_of(const ComparedSetting& setting, const ComparedSetting& baseline,
                       std::optional<double> baseline_seconds) {
  ComparisonLine line;
  line.strategy = setting.mode_name();
  line.nodes = setting.nodes;
  line.ranks = setting.ranks;
  line.repeats = setting.runs.size();
  for (const auto figure : {&ComparedRun::total_seconds, &ComparedRun::training_seconds, &ComparedRun::epoch_seconds,
                            &ComparedRun::rate, &ComparedRun::memory, &ComparedRun::sent, &ComparedRun::loss}) {
    line.*figure = median_of(setting, figure);
  }
  if (setting.runs.empty()) {
    line.failure = setting.failure;
    return line;
  }
  const ComparedRun& first = setting.runs.front();
  line.kept = static_cast<std::size_t>(
      std::ranges::count_if(setting.runs, [](const ComparedRun& run) { return std::isnan(run.total_seconds); }));
  line.name = median_run_of(setting);
  line.nodes = first.nodes;
  line.work = first.work;
  const auto ranks = static_cast<double>(setting.ranks);
  if (baseline_seconds) {
    line.speedup = *baseline_seconds / line.total_seconds;
    line.efficiency = line.speedup / ranks;
  } else if (first.work == baseline.runs.front().work) {
    line.speedup = line.rate / median_of(baseline, &ComparedRun::rate);
    line.efficiency = line.speedup * static_cast<double>(baseline.ranks) / ranks;
  }
  for (const train::MetricKind& kind : scores_of(first)) {
    if (train::find_metric(line.metrics, kind.name) != nullptr) continue;
    const double score = median_of(setting, [&](const ComparedRun& run) { return run.metric(kind.name); });
    if (std::isfinite(score)) line.metrics.emplace_back(kind.name, score);
  }
  return line;
}

OrderedJson line_json(const ComparisonLine& line) {
  OrderedJson object = {{"mode", line.strategy}, {"ranks", line.ranks}};
  if (line.nodes > 0) object["nodes"] = line.nodes;
  if (line.repeats == 0) {
    object["failure"] = line.failure;
    return object;
  }
  object["repeats"] = line.repeats;
  if (!line.name.empty()) object["median_run"] = line.name;
  if (line.kept > 0) object["kept"] = line.kept;
  for (const Figure& figure : figures) {
    const double value = line.*figure.value;
    const std::string key = figure.key == nullptr ? train::rate_key(line.work) : figure.key;
    if (std::isfinite(value) || !figure.is_left_out) object[key] = value;
  }
  for (const auto& [name, value] : line.metrics) {
    if (!object.contains(name)) object[name] = value;
  }
  return object;
}

/// Returns the cells of a row; the failure of a line stands in place of its figures. A line with another unit of work
/// than `work` has no work per second.
std::vector<std::string> cells_of(const ComparisonLine& line, const std::vector<train::MetricKind>& metrics,
                                  const std::string& work) {
  const auto count = [](std::size_t value) { return value > 0 ? std::to_string(value) : "-"; };
  std::vector<std::string> cells = {line.strategy, count(line.nodes), count(line.ranks)};
  if (!line.failure.empty()) {
    cells.push_back(line.failure);
    return cells;
  }
  for (const Figure& figure : figures) {
    const double value = line.*figure.value / figure.unit;
    const bool is_told = std::isfinite(value) && (figure.key != nullptr || line.work == work);
    cells.push_back(is_told ? fmt::format("{:.{}f}", value, figure.decimals) : "-");
  }
  for (const train::MetricKind& kind : metrics) cells.push_back(metric_value_text(kind, line.metric(kind.name)));
  cells.push_back(line.name.empty() ? "-" : line.name);
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

double ComparedRun::metric(const std::string& name) const {
  const double* const value = train::find_metric(metrics, name);
  return value == nullptr ? unknown_figure : *value;
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
  const std::string work = common_work(settings).value_or("work");
  const std::vector<train::MetricKind> metrics = compared_metrics(settings);
  TextTable table{.columns = {{"mode", 18}, {"nodes", 5}, {"ranks", 5}}, .rows = {}};
  for (const Figure& figure : figures) {
    table.columns.push_back({figure.heading == nullptr ? work + "/s" : figure.heading, figure.least_width});
  }
  for (const train::MetricKind& kind : metrics) table.columns.push_back({column_heading(kind), 7});
  table.columns.push_back({"median run", 10});
  if (baseline_seconds) {
    ComparisonLine baseline = line_of({std::string(baseline_name), 1, {}, {}}, {}, {});
    baseline.total_seconds = *baseline_seconds;
    baseline.speedup = baseline.efficiency = 1.0;
    table.rows.push_back(cells_of(baseline, metrics, work));
  }
  for (const ComparisonLine& line : comparison_lines(settings, baseline_seconds)) {
    table.rows.push_back(cells_of(line, metrics, work));
  }
  return table_text(table, format);
}

}  // namespace mylos::app
