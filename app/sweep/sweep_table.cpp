#include "app/sweep/sweep_table.hpp"

#include "app/report/compared_runs.hpp"
#include "app/sweep/sweep_points.hpp"
#include "core/base/json.hpp"
#include "core/base/quantities.hpp"
#include "train/monitor/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string state_of(const train::RunRecord& run) {
  if (run.finished) return "finished";
  if (run.run.empty() && run.steps.empty()) return "not begun";
  const std::string progress = fmt::format("step {} of {}", run.done_steps(), run.planned_steps());
  if (!run.ended.empty()) return fmt::format("stopped at {}, {}", progress, run.ended);
  if (!run.is_quiet()) return "at " + progress;
  return fmt::format("stopped or hangs at {}: nothing written for {}", progress, duration_text(run.age));
}

/// Returns the metrics of the evaluation that was the best, or of the last one.
train::Metrics metrics_of(const train::RunRecord& run) {
  train::Metrics metrics;
  if (run.evaluations.empty()) return metrics;
  const auto best =
      std::ranges::find_if(run.evaluations.rbegin(), run.evaluations.rend(),
                           [](const nlohmann::json& row) { return row.value("best", nlohmann::json()) == true; });
  const nlohmann::json& row = best == run.evaluations.rend() ? run.evaluations.back() : *best;
  for (const train::MetricKind& kind : run.metric_kinds()) {
    const double value = train::number_of(row, kind.name.c_str());
    if (std::isfinite(value)) metrics.emplace_back(kind.name, value);
  }
  return metrics;
}

SweepLine line_of_point(const std::filesystem::path& sweep, SweepPoint point) {
  train::RunFollower follower(point_run(sweep, point.name));
  const train::RunRecord& run = follower.update();
  SweepLine line{.name = std::move(point.name), .varied = std::move(point.varied), .state = state_of(run)};
  line.finished = run.finished;
  line.kinds = run.metric_kinds();
  line.metrics = metrics_of(run);
  const auto best_by = run.run.find("best-by");
  if (best_by != run.run.end() && best_by->is_string()) line.best_by = best_by->get<std::string>();
  if (!run.steps.empty()) {
    line.loss = run.recent_loss();
    line.seconds = compared_run(run).training_seconds;
  }
  return line;
}

/// Returns the kinds of metrics that some line has, in the order in which the runs list them.
std::vector<train::MetricKind> all_kinds(const std::vector<SweepLine>& lines) {
  std::vector<train::MetricKind> kinds;
  for (const SweepLine& line : lines) {
    for (const train::MetricKind& kind : line.kinds) {
      const bool has_value = train::find_metric(line.metrics, kind.name) != nullptr;
      if (has_value && train::find_kind(kinds, kind.name) == nullptr) kinds.push_back(kind);
    }
  }
  return kinds;
}

/// Returns a number that is smaller for better points; NaN if the point has no result.
double rank_of(const SweepLine& line, const std::vector<train::MetricKind>& kinds, const std::string& best_by) {
  if (kinds.empty()) return line.loss;
  const train::MetricKind* named = train::find_kind(kinds, best_by);
  const train::MetricKind& kind = named == nullptr ? kinds.front() : *named;
  const double* const value = train::find_metric(line.metrics, kind.name);
  if (value == nullptr) return unknown_figure;
  return kind.larger_is_better ? -*value : *value;
}

std::string shown_metric(const train::MetricKind& kind, const SweepLine& line) {
  const double* const value = train::find_metric(line.metrics, kind.name);
  return metric_value_text(kind, value == nullptr ? unknown_figure : *value);
}

/// Returns the names of the options that vary, in the order of the points.
std::vector<std::string> varied_names(const std::vector<SweepLine>& lines) {
  std::map<std::string_view, const SweepLine*> points;
  for (const SweepLine& line : lines) points.emplace(line.name, &line);
  std::vector<std::string> names;
  for (const auto& [point, line] : points) {
    for (const auto& [name, value] : line->varied.items()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

std::vector<SweepLine> sweep_lines(const std::filesystem::path& sweep) {
  std::vector<SweepLine> lines;
  for (SweepPoint& point : read_sweep(sweep)) lines.push_back(line_of_point(sweep, std::move(point)));
  const std::vector<train::MetricKind> kinds = all_kinds(lines);
  const auto told = std::ranges::find_if(lines, [](const SweepLine& line) { return !line.best_by.empty(); });
  const std::string best_by = told == lines.end() ? "" : told->best_by;
  std::ranges::stable_sort(lines, [&](const SweepLine& one, const SweepLine& other) {
    const double first = rank_of(one, kinds, best_by), second = rank_of(other, kinds, best_by);
    return std::isnan(second) ? !std::isnan(first) : first < second;
  });
  return lines;
}

std::size_t finished_points(const std::vector<SweepLine>& lines) {
  return static_cast<std::size_t>(std::ranges::count(lines, true, &SweepLine::finished));
}

OrderedJson sweep_json(const std::vector<SweepLine>& lines) {
  OrderedJson all = OrderedJson::array();
  for (const SweepLine& line : lines) {
    OrderedJson object = {
        {"name", line.name}, {"varied", line.varied}, {"state", line.state}, {"finished", line.finished}};
    if (std::isfinite(line.loss)) object["loss"] = line.loss;
    if (std::isfinite(line.seconds)) object["training_seconds"] = line.seconds;
    for (const auto& [name, value] : line.metrics) {
      if (!object.contains(name)) object[name] = value;
    }
    all.push_back(std::move(object));
  }
  return all;
}

std::string sweep_table(const std::vector<SweepLine>& lines, TableFormat format) {
  const std::vector<std::string> names = varied_names(lines);
  const std::vector<train::MetricKind> kinds = all_kinds(lines);
  TextTable table{.columns = {{"point"}}, .rows = {}};
  for (const std::string& name : names) table.columns.push_back({name});
  for (const train::MetricKind& kind : kinds) table.columns.push_back({column_heading(kind)});
  for (const char* heading : {"loss", "training min", "state"}) table.columns.push_back({heading});
  const auto decimal = [](double value, int decimals) {
    return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : std::string("-");
  };
  for (const SweepLine& line : lines) {
    std::vector<std::string> cells = {line.name.substr(0, line.name.find('-'))};
    for (const std::string& name : names) {
      cells.push_back(line.varied.contains(name) ? plain_text(line.varied[name]) : "-");
    }
    for (const train::MetricKind& kind : kinds) cells.push_back(shown_metric(kind, line));
    cells.push_back(decimal(line.loss, 4));
    cells.push_back(decimal(line.seconds / 60.0, 2));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      table.columns[i].least_width = std::max(table.columns[i].least_width, cells[i].size());
    }
    cells.push_back(line.state);
    table.rows.push_back(std::move(cells));
  }
  return table_text(table, format);
}

}  // namespace mylos::app
