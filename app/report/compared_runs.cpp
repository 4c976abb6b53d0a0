#include "app/report/compared_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view percent = "%";
constexpr std::size_t least_rate_width = 9, least_metric_width = 7;  // columns of text

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double median_of(const ComparedSetting& setting, const std::function<double(const ComparedRun&)>& field) {
  std::vector<double> values;
  for (const ComparedRun& run : setting.runs) values.push_back(field(run));
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
    if (value != nullptr && std::isfinite(*value)) values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(middle_of(std::move(values)));
}

/// Returns the metrics of a run that have a column.
std::span<const train::MetricKind> scores_of(const ComparedRun& run) {
  return std::span(run.kinds).subspan(run.kinds.size() > 1 ? 1 : 0);
}

Json setting_json(const ComparedSetting& setting, const ComparedSetting& baseline) {
  Json line = {{"mode", setting.mode}, {"ranks", setting.ranks}};
  if (setting.runs.empty()) {
    line["failure"] = setting.failure;
    return line;
  }
  const ComparedRun& first = setting.runs.front();
  const auto rate = [](const ComparedRun& run) { return run.rate; };
  line["repeats"] = setting.runs.size();
  line["total_seconds"] = median_of(setting, [](const ComparedRun& run) { return run.total_seconds; });
  line["training_seconds"] = median_of(setting, [](const ComparedRun& run) { return run.training_seconds; });
  line[train::rate_key(first.work)] = median_of(setting, rate);
  if (first.work == baseline.runs.front().work) {
    const double speedup = median_of(setting, rate) / median_of(baseline, rate);
    line["speedup"] = speedup;
    line["efficiency"] = speedup * static_cast<double>(baseline.ranks) / static_cast<double>(setting.ranks);
  }
  line["memory"] = median_of(setting, [](const ComparedRun& run) { return run.memory; });
  line["sent_per_step"] = median_of(setting, [](const ComparedRun& run) { return run.sent; });
  line["loss"] = median_of(setting, [](const ComparedRun& run) { return run.loss; });
  for (const train::MetricKind& kind : scores_of(first)) {
    if (line.contains(kind.name)) continue;
    if (const auto score = score_of(setting, kind.name)) line[kind.name] = *score;
  }
  return line;
}

std::string text_of(const Json& line, const std::string& key, int decimals, double unit = 1.0) {
  return line.contains(key) ? fmt::format("{:.{}f}", line[key].get<double>() / unit, decimals) : "-";
}

/// Returns the width of a column in the table of `mylos compare`.
std::size_t width_of(const std::string& heading, std::size_t least) { return std::max(heading.size(), least); }

std::string table_line(const Json& line, const std::vector<train::MetricKind>& metrics, const std::string& work) {
  constexpr double mebibyte = 1u << 20;
  std::string text = fmt::format(
      "{:>9} {:>11} {:>{}} {:>8} {:>10} {:>11} {:>11} {:>10}", text_of(line, "total_seconds", 1),
      text_of(line, "training_seconds", 1), text_of(line, train::rate_key(work), 0),
      width_of(work + "/s", least_rate_width), text_of(line, "speedup", 2), text_of(line, "efficiency", 2),
      text_of(line, "memory", 0, mebibyte), text_of(line, "sent_per_step", 2, mebibyte), text_of(line, "loss", 6));
  const mylos::Json row = line;
  for (const train::MetricKind& kind : metrics) {
    text += fmt::format(" {:>{}}", metric_value_text(kind, train::number_of(row, kind.name.c_str())),
                        width_of(column_heading(kind), least_metric_width));
  }
  return text + "\n";
}

}  // namespace

ComparedRun compared_run(const train::RunRecord& record) {
  require(!record.steps.empty(), "compared_run: no steps");
  ComparedRun run{.work = record.work(), .kinds = record.metric_kinds()};
  std::vector<double> rates;
  double work = 0.0;
  for (const mylos::Json& step : record.steps) {
    const double seconds = train::number_of(step, "seconds"), done = train::number_of(step, run.work.c_str());
    run.memory = std::fmax(run.memory, train::number_of(step, "memory"));
    run.sent += train::number_of(step, "sent") / static_cast<double>(record.steps.size());
    if (std::isfinite(seconds)) run.training_seconds += seconds;
    if (!std::isfinite(done / seconds)) continue;
    rates.push_back(done / seconds);
    work += done;
  }
  run.mean_rate = work / run.training_seconds;
  run.rate = rates.empty() ? std::nan("") : middle_of(std::move(rates));
  run.loss = train::number_of(record.steps.back(), "loss");
  for (const train::MetricKind& kind : run.kinds) {
    const char* const name = kind.name.c_str();
    const auto last = std::ranges::find_if(record.evaluations.rbegin(), record.evaluations.rend(),
                                           [name](const mylos::Json& row) { return row.contains(name); });
    if (last != record.evaluations.rend()) run.metrics.emplace_back(kind.name, train::number_of(*last, name));
  }
  return run;
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

Json comparison_json(const std::vector<ComparedSetting>& settings) {
  Json lines = Json::array();
  const ComparedSetting* baseline = baseline_of(settings);
  for (const ComparedSetting& setting : settings) {
    lines.push_back(setting_json(setting, baseline == nullptr ? setting : *baseline));
  }
  return lines;
}

std::string comparison_table(const std::vector<ComparedSetting>& settings) {
  const std::vector<train::MetricKind> metrics = compared_metrics(settings);
  const std::string work = common_work(settings).value_or("work"), rate = work + "/s";
  std::string table = fmt::format("{:<18} {:>5} {:>9} {:>11} {:>{}} {:>8} {:>10} {:>11} {:>11} {:>10}", "mode", "ranks",
                                  "total s", "training s", rate, width_of(rate, least_rate_width), "speedup",
                                  "efficiency", "MiB a rank", "sent MiB", "loss");
  for (const train::MetricKind& kind : metrics) {
    const std::string heading = column_heading(kind);
    table += fmt::format(" {:>{}}", heading, width_of(heading, least_metric_width));
  }
  table += '\n';
  for (const Json& line : comparison_json(settings)) {
    table += fmt::format("{:<18} {:>5} ", line["mode"].get<std::string>(), line["ranks"].get<std::size_t>());
    table += line.contains("failure") ? line["failure"].get<std::string>() + "\n" : table_line(line, metrics, work);
  }
  return table;
}

}  // namespace mylos::app
