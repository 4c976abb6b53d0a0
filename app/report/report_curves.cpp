#include "app/report/report.hpp"

#include "app/report/html.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace mylos::app {
namespace {

using nlohmann::json;

/// Returns the values of `name` over the steps of the rows.
std::vector<CurvePoint> points_of(const std::vector<json>& rows, const char* name, double unit = 1.0) {
  std::vector<CurvePoint> points;
  for (const json& row : rows) {
    if (row.contains(name)) points.push_back({row["step"].get<double>(), train::number_of(row, name) / unit});
  }
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  return points;
}

using Rows = std::vector<json> train::RunRecord::*;

/// Returns a chart with one curve per run, over rows of steps or of evaluations.
Chart chart_of(const std::vector<ReportedRun>& runs, std::string title, std::string unit, const char* name,
               double scale = 1.0, Rows rows = &train::RunRecord::steps) {
  Chart chart{.title = std::move(title), .unit = std::move(unit)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    chart.curves.push_back({.name = runs[i].name,
                            .points = points_of(runs[i].record.*rows, name, scale),
                            .colour = i,
                            .marks = rows == &train::RunRecord::evaluations});
  }
  return chart;
}

/// Returns the smoothing window for a curve with this number of points.
std::size_t smoothing_width(std::size_t points) { return std::clamp<std::size_t>(points / 40, 3, 501) | 1u; }

/// Returns the common smoothing window of all curves: that of the shortest one, ignoring curves shorter than a tenth of
/// the longest.
std::size_t common_width(const std::vector<Curve>& curves) {
  std::size_t longest = 0;
  for (const Curve& curve : curves) longest = std::max(longest, curve.points.size());
  std::size_t shortest = longest;
  for (const Curve& curve : curves) {
    if (curve.points.size() >= longest / 10) shortest = std::min(shortest, curve.points.size());
  }
  const std::size_t width = smoothing_width(shortest);
  return longest < 2 * width ? 1 : width;
}

/// Smooths the curves of a chart. A single run also shows its raw curve; several runs show only smoothed curves, so
/// that they can be distinguished.
std::string smoothed_chart(Chart chart) {
  const std::size_t width = common_width(chart.curves);
  if (width == 1) return chart_html(chart);
  chart.gaps = gaps_in(chart.curves);
  std::vector<Curve> curves;
  for (Curve& curve : chart.curves) {
    Curve smooth{.name = curve.name, .points = smoothed(curve.points, width), .colour = curve.colour};
    if (chart.curves.size() == 1) {
      curve.name = "each step";
      curve.faint = true;
      smooth.name = fmt::format("mean of {} steps", width);
      curves.push_back(std::move(curve));
    }
    curves.push_back(std::move(smooth));
  }
  if (chart.curves.size() > 1)
    chart.note = fmt::format("Each point is the mean of {} neighbouring steps, of fewer at the ends.", width);
  chart.curves = std::move(curves);
  return chart_html(chart);
}

/// Returns the names of the evaluation metrics: those of `kinds` in order, then losses, then the others in order of
/// appearance.
std::vector<std::string> metric_names(const std::vector<ReportedRun>& runs, std::span<const train::MetricKind> kinds) {
  static constexpr std::array others = {"step", "seconds", "best", "time"};
  std::vector<std::string> names;
  for (const ReportedRun& run : runs) {
    for (const json& row : run.record.evaluations) {
      for (const auto& [name, value] : row.items()) {
        const bool is_metric =
            std::ranges::find(others, name) == others.end() && (value.is_number() || value.is_null());
        if (is_metric && std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
  }
  const auto position = [&](const std::string& name) {
    if (const train::MetricKind* const kind = train::find_kind(kinds, name)) return kind - kinds.data();
    return std::ssize(kinds) + (name.find("loss") != std::string::npos ? 0 : 1);
  };
  std::ranges::stable_sort(names, {}, position);
  return names;
}

/// `kinds`: those of all runs, beginning with the first run's.
std::string metric_chart(const std::vector<ReportedRun>& runs, std::span<const train::MetricKind> kinds,
                         const std::string& name) {
  const train::MetricKind* const kind = train::find_kind(kinds, name);
  const std::string unit = kind == nullptr || kind->unit.empty() ? "" : kind->unit + ", ";
  return chart_html(chart_of(runs, train::metric_title(kinds, name), unit + "at evaluations", name.c_str(), 1.0,
                             &train::RunRecord::evaluations));
}

/// For a single run, includes the norm above which its gradients are clipped.
std::string gradient_chart(const std::vector<ReportedRun>& runs) {
  Chart chart = chart_of(runs, "Gradient norm", "before clipping", "gradient_norm");
  const json clip = runs.front().record.run.value("clip", json());
  if (runs.size() == 1 && clip.is_number() && clip.get<double>() > 0.0) {
    chart.level = ChartLevel{clip.get<double>(), "clipped above " + number_text(clip.get<double>())};
  }
  return smoothed_chart(std::move(chart));
}

/// Returns one chart for all runs with the same unit of work.
std::vector<std::string> speed_charts(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> works;
  for (const ReportedRun& run : runs) {
    if (std::ranges::find(works, run.record.work()) == works.end()) works.push_back(run.record.work());
  }
  std::vector<std::string> charts;
  for (const std::string& work : works) {
    Chart chart = chart_of(runs, "Speed", work + "/s, all ranks", train::rate_key(work).c_str());
    std::erase_if(chart.curves, [&](const Curve& curve) { return runs[curve.colour].record.work() != work; });
    charts.push_back(smoothed_chart(std::move(chart)));
  }
  return charts;
}

std::string memory_chart(const std::vector<ReportedRun>& runs) {
  constexpr double mebibyte = 1u << 20, gibibyte = 1u << 30;
  double most = 0.0;
  for (const ReportedRun& run : runs) most = std::max(most, run.figures ? run.figures->memory : 0.0);
  const bool is_large = most >= 2.0 * gibibyte;
  return chart_html(chart_of(runs, "Memory", fmt::format("{} of rank 0, the maximum so far", is_large ? "GiB" : "MiB"),
                             "memory", is_large ? gibibyte : mebibyte));
}

}  // namespace

std::string charts_html(const std::vector<std::string>& charts) {
  std::string html;
  for (const std::string& chart : charts) html += chart;
  return html.empty() ? html : element("div", "class=\"charts\"", "\n" + html) + "\n";
}

std::string curves_html(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> charts = {smoothed_chart(chart_of(runs, "Training loss", "", "loss"))};
  std::vector<train::MetricKind> kinds;
  for (const ReportedRun& run : runs) std::ranges::move(run.record.metric_kinds(), std::back_inserter(kinds));
  for (const std::string& name : metric_names(runs, kinds)) charts.push_back(metric_chart(runs, kinds, name));
  charts.push_back(chart_html(chart_of(runs, "Learning rate", "", "learning_rate")));
  charts.push_back(gradient_chart(runs));
  charts.push_back(chart_html(chart_of(runs, "Loss scale", "", "loss_scale")));
  std::ranges::move(speed_charts(runs), std::back_inserter(charts));
  charts.push_back(memory_chart(runs));
  return charts_html(charts);
}

}  // namespace mylos::app
