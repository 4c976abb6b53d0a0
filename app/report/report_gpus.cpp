#include "app/report/report_gpus.hpp"

#include "app/report/html.hpp"
#include "app/report/report_curves.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/quantities.hpp"

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

/// Minutes since the first sample, without the breaks between starts of the run, in which there are no samples.
class RunningTime {
 public:
  explicit RunningTime(const std::vector<train::GpuSeries>& gpus) {
    for (const train::GpuSeries& gpu : gpus) {
      for (const auto& point : gpu.points) minutes_[point.time] = 0.0;
    }
    std::vector<double> gaps;
    double last = not_known;
    for (const auto& [time, unused] : minutes_) {
      if (std::isfinite(last)) gaps.push_back(time - last);
      last = time;
    }
    constexpr double least = 60.0, usual = 20.0;
    double longest = least;
    if (!gaps.empty()) {
      std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
      longest = std::max(least, usual * gaps[gaps.size() / 2]);
    }
    double running = 0.0;
    last = not_known;
    for (auto& [time, minutes] : minutes_) {
      if (std::isfinite(last) && time - last <= longest) running += (time - last) / 60.0;
      minutes = running;
      last = time;
    }
  }
  double minutes(double time) const { return minutes_.at(time); }
  double whole() const { return minutes_.empty() ? 0.0 : minutes_.rbegin()->second; }

 private:
  std::map<double, double> minutes_;
};

std::vector<CurvePoint> points_of(const train::GpuSeries& gpu, const GpuQuantity& quantity, const RunningTime& time) {
  std::vector<CurvePoint> points;
  for (const auto& point : gpu.points) points.push_back({time.minutes(point.time), value_of(point.reading, quantity)});
  std::ranges::stable_sort(points, {}, &CurvePoint::x);
  return points;
}

/// Returns the mean, minimum and maximum over all GPUs in each of several equal parts of the time.
std::vector<Curve> curves_of_many(const std::vector<train::GpuSeries>& gpus, const GpuQuantity& quantity,
                                  const RunningTime& time) {
  constexpr std::size_t parts = 200;
  struct Part {
    double sum = 0.0, count = 0.0, low = not_known, high = not_known;
  };
  std::vector<Part> all(parts);
  for (const train::GpuSeries& gpu : gpus) {
    for (const CurvePoint& point : points_of(gpu, quantity, time)) {
      if (!point.is_finite()) continue;
      const double position = time.whole() > 0.0 ? point.x / time.whole() : 0.0;
      Part& part = all[std::min(parts - 1, static_cast<std::size_t>(position * parts))];
      part.sum += point.y;
      part.count += 1.0;
      part.low = std::fmin(part.low, point.y);
      part.high = std::fmax(part.high, point.y);
    }
  }
  std::vector<Curve> curves = {{.name = "mean", .points = {}, .colour = 0},
                               {.name = "lowest", .points = {}, .colour = 1},
                               {.name = "highest", .points = {}, .colour = 2}};
  for (std::size_t i = 0; i < parts; ++i) {
    if (all[i].count == 0.0) continue;
    const double x = (static_cast<double>(i) + 0.5) / parts * time.whole();
    curves[0].points.push_back({x, all[i].sum / all[i].count});
    curves[1].points.push_back({x, all[i].low});
    curves[2].points.push_back({x, all[i].high});
  }
  return curves;
}

std::string quantity_chart(const std::vector<train::GpuSeries>& gpus, const GpuQuantity& quantity,
                           const RunningTime& time) {
  constexpr std::size_t most_curves = 4;
  Chart chart{.title = quantity.title, .x_name = "time, minutes", .whole_x = false, .unit = quantity.unit};
  if (gpus.size() > most_curves) {
    chart.curves = curves_of_many(gpus, quantity, time);
    chart.note = fmt::format("Over all {} GPUs.", gpus.size());
  } else {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      chart.curves.push_back({.name = name_of(gpus[i]), .points = points_of(gpus[i], quantity, time), .colour = i});
    }
  }
  return chart_html(chart);
}

/// Figures over the samples of several GPUs.
struct GpuFigures {
  double utilization = not_known, power = not_known;  ///< means over samples
  double memory = not_known;                          ///< bytes, maximum of a GPU
  double joules = 0.0;
};

double mean_of(const std::vector<train::GpuSeries>& gpus, const GpuQuantity& quantity) {
  double sum = 0.0, count = 0.0;
  for (const train::GpuSeries& gpu : gpus) {
    for (const auto& point : gpu.points) {
      const double value = value_of(point.reading, quantity);
      if (!std::isfinite(value)) continue;
      sum += value;
      count += 1.0;
    }
  }
  return count > 0.0 ? sum / count : not_known;
}

GpuFigures figures_of(const std::vector<train::GpuSeries>& gpus) {
  GpuFigures figures{.utilization = mean_of(gpus, quantities[0]), .power = mean_of(gpus, quantities[2])};
  for (const train::GpuSeries& gpu : gpus) {
    figures.joules += gpu.energy.joules();
    for (const auto& point : gpu.points) {
      figures.memory = std::fmax(figures.memory, point.reading.memory.value_or(not_known));
    }
  }
  return figures;
}

std::vector<std::string> cells_of(std::string name, std::string what, const GpuFigures& figures) {
  const auto number = [](double value, const char* unit) {
    return std::isfinite(value) ? fmt::format("{:.0f} {}", value, unit) : number_text(value);
  };
  return {
      std::move(name),
      std::move(what),
      number(figures.utilization, "%"),
      std::isfinite(figures.memory) ? bytes_text(static_cast<std::size_t>(figures.memory))
                                    : number_text(figures.memory),
      number(figures.power, "W"),
      figures.joules > 0.0 ? fmt::format("{:.3g} kWh", train::kilowatt_hours(figures.joules)) : number_text(not_known)};
}

HtmlTable figures_table(const char* what) {
  constexpr auto right = HtmlTable::Align::right;
  return HtmlTable({{what, HtmlTable::Align::left},
                    {"GPU", HtmlTable::Align::left},
                    {"utilisation, mean", right},
                    {"memory, the most", right},
                    {"power, mean", right},
                    {"energy", right}});
}

std::string kind_of(const train::GpuSeries& gpu) { return gpu.points.empty() ? "" : gpu.points.front().reading.name; }

std::string one_run_html(const std::vector<train::GpuSeries>& gpus) {
  const RunningTime time(gpus);
  std::vector<std::string> charts;
  for (const GpuQuantity& quantity : quantities) charts.push_back(quantity_chart(gpus, quantity, time));
  HtmlTable table = figures_table("node/index");
  for (const train::GpuSeries& gpu : gpus) table.add(cells_of(name_of(gpu), kind_of(gpu), figures_of({gpu})));
  if (gpus.size() > 1) table.add(cells_of("all", count_of(gpus.size(), "GPU"), figures_of(gpus)));
  constexpr std::size_t most_rows = 16;
  std::string rows = table.html();
  if (gpus.size() > most_rows) {
    rows = text_element("p", "", "All together: " + cells_of("", "", figures_of(gpus)).back() + ".") +
           element("details", "", element("summary", "", "Each GPU") + rows);
  }
  return charts_html(charts) + rows +
         text_element("p", "class=\"note\"",
                      "Read from the GPUs' driver every few seconds of the run. The time between two starts of the run "
                      "is left out.");
}

}  // namespace

double energy_kilowatt_hours(const ReportedRun& run) { return train::kilowatt_hours(figures_of(run.gpus).joules); }

std::string gpus_html(const std::vector<ReportedRun>& runs) {
  if (runs.size() == 1) return runs.front().gpus.empty() ? std::string() : one_run_html(runs.front().gpus);
  HtmlTable table = figures_table("run");
  for (const ReportedRun& run : runs) {
    if (run.gpus.empty()) continue;
    table.add(
        cells_of(run.name, fmt::format("{} {}", run.gpus.size(), kind_of(run.gpus.front())), figures_of(run.gpus)));
  }
  return table.empty() ? std::string() : table.html();
}

}  // namespace mylos::app
