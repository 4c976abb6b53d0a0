#include "app/report/report.hpp"

#include "app/report/html.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mylos::app {
namespace {

using nlohmann::json;

/// Returns the sum of the values that are valid numbers of seconds; nullopt if no row has one.
std::optional<double> sum_of(const std::vector<json>& rows, const char* name) {
  constexpr double most = 1e10;  // about 300 years
  std::optional<double> sum;
  for (const json& row : rows) {
    const double value = train::number_of(row, name);
    if (value >= 0.0 && value < most) sum = sum.value_or(0.0) + value;
  }
  return sum;
}

/// Unrecorded time, in seconds.
struct Gaps {
  double short_ones = 0.0, long_ones = 0.0;
};

/// Returns the time that no step, evaluation or checkpoint covers, between the begin of the first and the end of the
/// last; zeros if no row has a time.
Gaps gaps_of(const train::RunRecord& run) {
  constexpr double longest = 60.0;
  std::vector<std::pair<double, double>> spans;
  for (const auto* rows : {&run.steps, &run.evaluations, &run.checkpoints}) {
    for (const json& row : *rows) {
      const double end = train::number_of(row, "time"), begin = end - train::number_of(row, "seconds");
      if (std::isfinite(begin)) spans.emplace_back(begin, end);
    }
  }
  Gaps gaps;
  if (spans.empty()) return gaps;
  std::ranges::sort(spans);
  double covered = spans.front().first;
  for (const auto& [begin, end] : spans) {
    const double gap = std::max(0.0, begin - covered);
    (gap > longest ? gaps.long_ones : gaps.short_ones) += gap;
    covered = std::max(covered, end);
  }
  return gaps;
}

/// Here and below, `several` says whether the report has other runs, including runs without steps.
std::string bars_html(const std::vector<RunTime>& runs, bool several) {
  std::string html;
  for (const RunTime& run : runs) {
    if (several) html += text_element("span", "", run.name);
    html += bar_svg(run.parts, "Shares of the time of " + run.name + "; the table has them.");
  }
  return several ? element("div", "class=\"bars\"", html) : html;
}

/// Returns the seconds and the percentage of a part.
std::vector<std::string> part_cells(const BarPart& part, const std::vector<BarPart>& all, bool in_one) {
  double sum = 0.0;
  for (const BarPart& each : all) sum += each.value;
  const std::string seconds = fixed_text(part.value, 2);
  const std::string share = sum > 0.0 ? fmt::format("{:.1f} %", 100.0 * part.value / sum) : number_text(std::nan(""));
  if (!in_one) return {seconds, share};
  return {seconds + text_element("small", "", share)};
}

/// Returns a table with one row per part: for one run, a column for seconds and one for percentages; for several runs,
/// one column per run with both.
std::string table_html(const std::vector<RunTime>& runs, bool several) {
  std::vector<std::string> head = {several ? "seconds and share" : "part"};
  for (const RunTime& run : runs) {
    head.push_back(several ? run.name : "seconds");
    if (!several) head.push_back("share");
  }
  HtmlTable table(std::move(head));
  for (std::size_t i = 0; i < runs.front().parts.size(); ++i) {
    if (std::ranges::none_of(runs, [i](const RunTime& run) { return run.parts[i].value > 0.0; })) continue;
    const BarPart& named = runs.front().parts[i];
    std::vector<std::string> cells = {fmt::format("<span class=\"key f{}\"></span>{}", named.colour, named.name)};
    for (const RunTime& run : runs) {
      const std::vector<std::string> more = part_cells(run.parts[i], run.parts, several);
      cells.insert(cells.end(), more.begin(), more.end());
    }
    table.add_html(cells);
  }
  return table.html();
}

std::string explanation(const std::vector<RunTime>& runs) {
  const bool has_update = std::ranges::any_of(runs, &RunTime::has_update);
  std::string text = "Wall-clock seconds of rank 0.";
  if (!has_update) text += " The run did not record the parts of its steps.";
  if (has_update && std::ranges::none_of(runs, &RunTime::has_exchange)) {
    text += " Communication during computation on GPUs counts as part of the passes, because the host does not see it.";
  }
  if (std::ranges::any_of(runs, [](const RunTime& run) { return run.parts.back().value > 0.0; })) {
    text += " Between these: writing models, and short pauses between starts of the run.";
  }
  return text_element("p", "class=\"note\"", text);
}

/// Reports pauses separately: waiting for hours to be restarted is not time spent by the run.
std::string pauses_html(const std::vector<RunTime>& runs, bool several) {
  std::string html;
  for (const RunTime& run : runs) {
    if (run.pauses == 0.0) continue;
    html += text_element(
        "p", "",
        fmt::format("{}Not counted: {} in pauses of more than a minute, such as those between starts of the run.",
                    several ? run.name + ". " : "", duration_text(run.pauses)));
  }
  return html;
}

std::string kernels_html(const std::vector<BreakdownRow>& kernels) {
  if (kernels.empty()) {
    return element(
        "p", "class=\"note\"",
        "Times of single kernels are measured by <code>mylos bench step --model MODEL --data FILE --breakdown "
        "--json</code>; <code>mylos report --kernels FILE</code> shows what it printed here.");
  }
  HtmlTable table({"kernel", "calls a step", "ms a step", "share", "of the roofline"});
  for (const BreakdownRow& row : kernels) {
    table.add({row.name, number_text(row.calls), fmt::format("{:.3f}", 1e3 * row.seconds),
               fmt::format("{:.1f} %", 100.0 * row.share),
               row.roofline ? fmt::format("{:.0f} %", 100.0 * *row.roofline) : number_text(std::nan(""))});
  }
  return text_element("h3", "", "Kernels of one step, measured apart from the run") + table.html();
}

}  // namespace

RunTime time_of(const std::string& name, const train::RunRecord& run) {
  const auto data = sum_of(run.steps, "data_seconds"), exchange = sum_of(run.steps, "exchange_seconds"),
             update = sum_of(run.steps, "update_seconds");
  const double known = data.value_or(0.0) + exchange.value_or(0.0) + update.value_or(0.0);
  const Gaps gaps = gaps_of(run);
  return {
      .name = name,
      .parts = {{"forward and backward passes", std::max(0.0, sum_of(run.steps, "seconds").value_or(0.0) - known), 0},
                {"waiting for other ranks", exchange.value_or(0.0), 1},
                {"optimizer", update.value_or(0.0), 2},
                {"making batches", data.value_or(0.0), 3},
                {"evaluations", sum_of(run.evaluations, "seconds").value_or(0.0), 4},
                {"checkpoints", sum_of(run.checkpoints, "seconds").value_or(0.0), 5},
                {"between these", gaps.short_ones, 6}},
      .has_exchange = exchange.has_value(),
      .has_update = update.has_value(),
      .pauses = gaps.long_ones};
}

std::string time_html(const std::vector<ReportedRun>& runs, const std::vector<BreakdownRow>& kernels) {
  std::vector<RunTime> timed;
  for (const ReportedRun& run : runs) {
    if (!run.record.steps.empty()) timed.push_back(time_of(run.name, run.record));
  }
  if (timed.empty() && kernels.empty()) return {};
  const bool several = runs.size() > 1;
  std::string html;
  if (!timed.empty()) {
    html = bars_html(timed, several) + table_html(timed, several) + pauses_html(timed, several) + explanation(timed);
  }
  return html + kernels_html(kernels);
}

}  // namespace mylos::app
