#include "app/report_time.hpp"

#include "app/html.hpp"
#include "app/svg_chart.hpp"
#include "train/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::app {
namespace {

using nlohmann::json;

/// Sum of the finite values; nothing where no row has one.
std::optional<double> sum_of(const std::vector<json>& rows, const char* name) {
  std::optional<double> sum;
  for (const json& row : rows) {
    if (const double value = train::number_of(row, name); std::isfinite(value)) sum = sum.value_or(0.0) + value;
  }
  return sum;
}

double last_time(const std::vector<json>& rows) {
  return rows.empty() ? std::nan("") : train::number_of(rows.back(), "time");
}

/// From the first step's begin to the last line.
std::optional<double> whole_time(const train::RunRecord& run) {
  const double begin = train::number_of(run.steps.front(), "time") - train::number_of(run.steps.front(), "seconds");
  double end = last_time(run.steps);
  for (const auto* rows : {&run.evaluations, &run.checkpoints}) end = std::fmax(end, last_time(*rows));
  return std::isfinite(end - begin) ? std::optional(end - begin) : std::nullopt;
}

/// All parts of a run in one order, as colours know them.
std::vector<BarPart> parts_of(const RunTime& time) {
  const auto shown = [](const std::optional<double>& seconds) { return std::max(0.0, seconds.value_or(0.0)); };
  return {{"forward and backward passes", time.passes, 0},
          {"waiting for other ranks", shown(time.exchange), 1},
          {"optimizer", shown(time.update), 2},
          {"making batches", shown(time.data), 3},
          {"evaluations", time.evaluations, 4},
          {"checkpoints", shown(time.checkpoints), 5},
          {"between these", shown(time.between), 6}};
}

std::string bars_html(const std::vector<ReportedRun>& runs) {
  std::string html;
  for (const ReportedRun& run : runs) {
    if (run.record.steps.empty()) continue;
    if (runs.size() > 1) html += text_element("span", "", run.name);
    html += bar_svg(parts_of(time_of(run.record)), "Shares of the time of " + run.name + "; the table has them.");
  }
  return runs.size() > 1 ? element("div", "class=\"bars\"", html) : html;
}

/// Seconds and share of each part, a column pair a run.
std::string table_html(const std::vector<ReportedRun>& runs) {
  std::vector<HtmlTable::Column> head = {{"part", HtmlTable::Align::left}};
  std::vector<std::vector<BarPart>> parts;
  for (const ReportedRun& run : runs) {
    if (run.record.steps.empty()) continue;
    const std::string of = runs.size() > 1 ? run.name + ", " : "";
    head.push_back({of + "seconds", HtmlTable::Align::right});
    head.push_back({"share", HtmlTable::Align::right});
    parts.push_back(parts_of(time_of(run.record)));
  }
  HtmlTable table(std::move(head));
  for (std::size_t i = 0; i < parts.front().size(); ++i) {
    const BarPart& named = parts.front()[i];
    const bool is_there = std::ranges::any_of(parts, [i](const auto& run) { return run[i].value > 0.0; });
    if (!is_there) continue;
    std::vector<std::string> cells = {fmt::format("<span class=\"key f{}\"></span>{}", named.colour, named.name)};
    for (const std::vector<BarPart>& run : parts) {
      double sum = 0.0;
      for (const BarPart& part : run) sum += part.value;
      cells.push_back(fmt::format("{:.2f}", run[i].value));
      cells.push_back(fmt::format("{:.1f} %", 100.0 * run[i].value / sum));
    }
    table.add_html(cells);
  }
  return table.html();
}

std::string explanation(const std::vector<ReportedRun>& runs) {
  const auto knows = [&](std::optional<double> RunTime::*part) {
    return std::ranges::any_of(
        runs, [part](const ReportedRun& run) { return !run.record.steps.empty() && time_of(run.record).*part; });
  };
  std::string text = "Seconds of rank 0 by the clock on the wall.";
  if (!knows(&RunTime::update)) text += " The run did not record the parts of its steps.";
  if (knows(&RunTime::update) && !knows(&RunTime::exchange)) {
    text += " What ranks exchange while GPUs compute is within the passes: the host does not see it.";
  }
  if (knows(&RunTime::between))
    text += " Between these: models that are written, and pauses between starts of the run.";
  return text_element("p", "class=\"note\"", text);
}

/// {"breakdown": {"kernels": [{"name", "calls", "seconds", "share", "roofline"?}]}}: app/step_breakdown.cpp.
std::string kernels_html(const json& kernels) {
  if (kernels.is_null()) {
    return element(
        "p", "class=\"note\"",
        "Times of single kernels are measured by <code>mylos bench step --model MODEL --data FILE --breakdown "
        "--json</code>; <code>mylos report --kernels FILE</code> shows what it printed here.");
  }
  HtmlTable table({{"kernel", HtmlTable::Align::left},
                   {"calls a step", HtmlTable::Align::right},
                   {"ms a step", HtmlTable::Align::right},
                   {"share", HtmlTable::Align::right},
                   {"of the roofline", HtmlTable::Align::right}});
  const json none = json::array();
  const json& breakdown = kernels.at("breakdown");
  for (const json& row : breakdown.value("kernels", none)) {
    const double roofline = train::number_of(row, "roofline");
    table.add({row.value("name", std::string("?")), number_text(train::number_of(row, "calls")),
               fmt::format("{:.3f}", 1e3 * train::number_of(row, "seconds")),
               fmt::format("{:.1f} %", 100.0 * train::number_of(row, "share")),
               std::isfinite(roofline) ? fmt::format("{:.0f} %", 100.0 * roofline) : number_text(roofline)});
  }
  return text_element("h3", "", "Kernels of one step, measured apart from the run") + table.html();
}

}  // namespace

RunTime time_of(const train::RunRecord& run) {
  RunTime time{.data = sum_of(run.steps, "data_seconds"),
               .exchange = sum_of(run.steps, "exchange_seconds"),
               .update = sum_of(run.steps, "update_seconds"),
               .evaluations = sum_of(run.evaluations, "seconds").value_or(0.0),
               .checkpoints = sum_of(run.checkpoints, "seconds")};
  const double steps = sum_of(run.steps, "seconds").value_or(0.0);
  const double known = time.data.value_or(0.0) + time.exchange.value_or(0.0) + time.update.value_or(0.0);
  time.passes = std::max(0.0, steps - known);
  if (const auto whole = run.steps.empty() ? std::nullopt : whole_time(run)) {
    time.between = std::max(0.0, *whole - steps - time.evaluations - time.checkpoints.value_or(0.0));
  }
  return time;
}

std::string time_html(const std::vector<ReportedRun>& runs, const json& kernels) {
  const bool has_steps = std::ranges::any_of(runs, [](const ReportedRun& run) { return !run.record.steps.empty(); });
  if (!has_steps && kernels.is_null()) return {};
  std::string html;
  if (has_steps) html = bars_html(runs) + table_html(runs) + explanation(runs);
  return html + kernels_html(kernels);
}

}  // namespace mylos::app
