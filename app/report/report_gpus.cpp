#include "app/report/report.hpp"

#include "app/report/html.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/text/quantities.hpp"
#include "train/monitor/gpu_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace mylos::app {
namespace {

constexpr double gibibyte = 1u << 30, not_known = std::numeric_limits<double>::quiet_NaN();

/// A quantity of a GPU, as shown.
struct GpuQuantity {
  const char* title;
  const char* unit;
  std::optional<double> train::GpuReading::*field;
  double scale;
};
constexpr GpuQuantity quantities[] = {
    {"Utilisation", "% of the time in which a kernel ran", &train::GpuReading::utilization, 1.0},
    {"GPU memory", "GiB in use", &train::GpuReading::memory, gibibyte},
    {"Power", "W", &train::GpuReading::power, 1.0}};

double value_of(const train::GpuReading& reading, const GpuQuantity& quantity) {
  const std::optional<double>& value = reading.*quantity.field;
  return value ? *value / quantity.scale : not_known;
}

std::string name_of(const train::GpuSeries& gpu) { return fmt::format("{}/{}", gpu.node, gpu.index); }

/// Minutes by time, as of a sample.
using Minutes = std::map<double, double>;

/// Returns the minutes since the first sample, without the breaks between starts of the run, in which there are no
/// samples.
Minutes running_minutes(const std::vector<train::GpuSeries>& gpus) {
  Minutes all;
  for (const train::GpuSeries& gpu : gpus) {
    for (const auto& point : gpu.points) all[point.time] = 0.0;
  }
  std::vector<double> gaps;
  double last = not_known, running = 0.0;
  for (const auto& [time, unused] : all) {
    if (std::isfinite(last)) gaps.push_back(time - last);
    last = time;
  }
  constexpr double least = 60.0, usual = 20.0;
  double longest = least;
  if (!gaps.empty()) {
    std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
    longest = std::max(least, usual * gaps[gaps.size() / 2]);
  }
  last = not_known;
  for (auto& [time, minutes] : all) {
    if (time - last <= longest) running += (time - last) / 60.0;
    minutes = running;
    last = time;
  }
  return all;
}

std::vector<CurvePoint> points_of(const train::GpuSeries& gpu, const GpuQuantity& quantity, const Minutes& minutes) {
  std::vector<CurvePoint> points;
  for (const auto& point : gpu.points) points.push_back({minutes.at(point.time), value_of(point.reading, quantity)});
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  return points;
}

/// Returns the mean, minimum and maximum over all GPUs in each of several equal parts of the time.
std::vector<Curve> curves_of_many(const std::vector<train::GpuSeries>& gpus, const GpuQuantity& quantity,
                                  const Minutes& minutes) {
  constexpr std::size_t parts = 200;
  std::vector<train::Statistics> all(parts);
  const double whole = minutes.empty() ? 0.0 : minutes.rbegin()->second;
  for (const train::GpuSeries& gpu : gpus) {
    for (const CurvePoint& point : points_of(gpu, quantity, minutes)) {
      if (!point.is_finite()) continue;
      const double position = whole > 0.0 ? point.x / whole : 0.0;
      all[std::min(parts - 1, static_cast<std::size_t>(position * parts))].add(point.y);
    }
  }
  std::vector<Curve> curves = {{.name = "mean", .points = {}, .colour = 0},
                               {.name = "lowest", .points = {}, .colour = 1},
                               {.name = "highest", .points = {}, .colour = 2}};
  for (std::size_t i = 0; i < parts; ++i) {
    if (all[i].empty()) continue;
    const double x = (static_cast<double>(i) + 0.5) / parts * whole;
    curves[0].points.push_back({x, all[i].mean()});
    curves[1].points.push_back({x, all[i].least()});
    curves[2].points.push_back({x, all[i].peak()});
  }
  return curves;
}

std::string quantity_chart(const std::vector<train::GpuSeries>& gpus, const GpuQuantity& quantity,
                           const Minutes& minutes) {
  constexpr std::size_t most_curves = 4;
  Chart chart{.title = quantity.title, .x_name = "time, minutes", .whole_x = false, .unit = quantity.unit};
  if (gpus.size() > most_curves) {
    chart.curves = curves_of_many(gpus, quantity, minutes);
    chart.note = fmt::format("Over all {} GPUs.", gpus.size());
  } else {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      chart.curves.push_back({.name = name_of(gpus[i]), .points = points_of(gpus[i], quantity, minutes), .colour = i});
    }
  }
  return chart_html(chart);
}

double joules_of(const std::vector<train::GpuSeries>& gpus) {
  double joules = 0.0;
  for (const train::GpuSeries& gpu : gpus) joules += gpu.energy.joules();
  return joules;
}

/// Returns the cells of several GPUs.
std::vector<std::string> cells_of(std::string name, std::string what, const std::vector<train::GpuSeries>& gpus) {
  train::Statistics utilization, memory, power;
  for (const train::GpuSeries& gpu : gpus) {
    for (const auto& point : gpu.points) {
      utilization.add(point.reading.utilization);
      memory.add(point.reading.memory);
      power.add(point.reading.power);
    }
  }
  const std::string unknown = number_text(not_known);
  const auto mean = [&](const train::Statistics& values, const char* unit) {
    return values.empty() ? unknown : fmt::format("{:.0f} {}", values.mean(), unit);
  };
  const double joules = joules_of(gpus);
  return {std::move(name),        std::move(what),
          mean(utilization, "%"), memory.empty() ? unknown : bytes_text(static_cast<std::size_t>(memory.peak())),
          mean(power, "W"),       joules > 0.0 ? fmt::format("{:.3g} kWh", train::kilowatt_hours(joules)) : unknown};
}

HtmlTable figures_table(const char* what) {
  return HtmlTable({what, "GPU", "utilisation, mean", "memory, the most", "power, mean", "energy"}, "llr");
}

std::string kind_of(const train::GpuSeries& gpu) { return gpu.points.empty() ? "" : gpu.points.front().reading.name; }

std::string one_run_html(const std::vector<train::GpuSeries>& gpus) {
  const Minutes minutes = running_minutes(gpus);
  std::vector<std::string> charts;
  for (const GpuQuantity& quantity : quantities) charts.push_back(quantity_chart(gpus, quantity, minutes));
  HtmlTable table = figures_table("node/index");
  for (const train::GpuSeries& gpu : gpus) table.add(cells_of(name_of(gpu), kind_of(gpu), {gpu}));
  if (gpus.size() > 1) table.add(cells_of("all", count_of(gpus.size(), "GPU"), gpus));
  constexpr std::size_t most_rows = 16;
  std::string rows = table.html();
  if (gpus.size() > most_rows) {
    rows = text_element("p", "", "All together: " + cells_of("", "", gpus).back() + ".") +
           element("details", "", element("summary", "", "Each GPU") + rows);
  }
  return charts_html(charts) + rows +
         text_element("p", "class=\"note\"",
                      "Read from the GPUs' driver every few seconds of the run. The time between two starts of the run "
                      "is left out.");
}

}  // namespace

double energy_kilowatt_hours(const ReportedRun& run) { return train::kilowatt_hours(joules_of(run.gpus)); }

std::string gpus_html(const std::vector<ReportedRun>& runs) {
  if (runs.size() == 1) return runs.front().gpus.empty() ? std::string() : one_run_html(runs.front().gpus);
  HtmlTable table = figures_table("run");
  for (const ReportedRun& run : runs) {
    if (run.gpus.empty()) continue;
    table.add(cells_of(run.name, fmt::format("{} {}", run.gpus.size(), kind_of(run.gpus.front())), run.gpus));
  }
  return table.empty() ? std::string() : table.html();
}

}  // namespace mylos::app
