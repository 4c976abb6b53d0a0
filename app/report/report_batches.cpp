#include "app/report/report.hpp"

#include "app/batch/batch_output.hpp"
#include "app/report/html.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

namespace mylos::app {
namespace {

constexpr double bytes_of_gib = 1u << 30;

using RowFigure = std::function<std::optional<double>(const BatchRow&)>;

std::string curve_name(const BatchSetting& setting) {
  return fmt::format("{}, recompute {}", to_string(setting.strategy), nn::to_string(setting.recompute));
}

/// Returns one curve per mode and recomputation, without the rows that lack the figure.
std::vector<Curve> batch_curves(const BatchTable& table, const RowFigure& figure) {
  std::vector<Curve> curves;
  for (const BatchRow& row : table.rows) {
    const std::string name = curve_name(row.setting);
    if (curves.empty() || curves.back().name != name) {
      curves.push_back({.name = name, .points = {}, .colour = curves.size(), .marks = true});
    }
    if (const std::optional<double> value = figure(row)) {
      curves.back().points.push_back({static_cast<double>(row.setting.micro_batch), *value});
    }
  }
  return curves;
}

std::string rate_chart(const BatchTable& table) {
  const std::string unit = table.work + "/s";
  return chart_html({.title = table.is_measured() ? "Speed, measured" : "Speed, predicted",
                     .x_name = "micro-batch, " + table.samples,
                     .unit = unit,
                     .curves = batch_curves(table, [](const BatchRow& row) { return row.rate; }),
                     .value_text = [unit](double value) { return number_text(value) + " " + unit; }});
}

std::string memory_chart(const BatchTable& table) {
  const auto figure = [](const BatchRow& row) -> std::optional<double> {
    if (row.planned == 0) return std::nullopt;
    return static_cast<double>(row.used.value_or(row.planned)) / bytes_of_gib;
  };
  return chart_html({.title = "Memory of a rank",
                     .x_name = "micro-batch, " + table.samples,
                     .unit = "GiB",
                     .curves = batch_curves(table, figure),
                     .level = ChartLevel{static_cast<double>(table.available) / bytes_of_gib, "there is"},
                     .note = table.is_measured() ? "Measured, or predicted for rows that do not fit." : "Planned.",
                     .value_text = [](double value) { return size_text(value * bytes_of_gib); }});
}

std::string optional_text(const std::optional<double>& value) { return value ? number_text(*value) : "-"; }

HtmlTable rows_table(const BatchTable& table) {
  const BatchRow* const fastest = fastest_row(table.rows);
  HtmlTable html(
      {"mode", "recompute", "micro-batch", "accumulated", "planned", "measured", "ms a step", table.work + "/s", ""},
      "llrrrrrrl");
  for (const BatchRow& row : table.rows) {
    const auto bytes = [](std::size_t size) { return size == 0 ? std::string("-") : bytes_text(size); };
    const std::string note = !row.failure.empty() ? row.failure
                             : &row == fastest    ? "fastest"
                             : row.fits           ? ""
                                                  : "does not fit: " + needed_text(table, row);
    html.add({std::string(to_string(row.setting.strategy)), std::string(nn::to_string(row.setting.recompute)),
              std::to_string(row.setting.micro_batch), std::to_string(row.micro_batches), bytes(row.planned),
              bytes(row.used.value_or(0)),
              optional_text(row.seconds ? std::optional(1e3 * *row.seconds) : std::nullopt), optional_text(row.rate),
              note});
  }
  return html;
}

}  // namespace

std::string batches_html(const BatchTable& table) {
  if (table.rows.empty()) return {};
  std::string html = text_element(
      "p", "",
      fmt::format("{} {} per step of {} in {} on {} of {}, with {} free on each, divided into micro-batches.",
                  count_text(table.batch), table.samples, table.model, table.precision, count_of(table.ranks, "rank"),
                  table.machine, bytes_text(table.available)));
  html += rate_chart(table) + memory_chart(table) + rows_table(table).html();
  std::string limits;
  for (const std::string& line : largest_lines(table)) limits += text_element("li", "", line);
  html +=
      text_element("p", "", fmt::format("Predicted largest micro-batch that fits in memory, in {}:", table.samples));
  html += element("ul", "", limits);
  if (!table.rate.empty()) html += text_element("p", "class=\"note\"", "Predicted; " + table.rate + ".");
  if (!table.line.empty()) html += element("p", "", "The fastest: " + text_element("code", "", table.line));
  return html + "\n";
}

}  // namespace mylos::app
