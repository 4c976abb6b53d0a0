#include "app/program/build_info.hpp"
#include "app/report/html.hpp"
#include "app/report/report.hpp"
#include "app/report/svg_chart.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

namespace mylos::app {
namespace {

using nlohmann::json;

/// Sections with headings, and links to them.
class Page {
 public:
  /// Adds a section; does nothing if `html` is empty.
  void add(std::string_view id, std::string_view heading, const std::string& html) {
    if (html.empty()) return;
    links_ += element("a", fmt::format("href=\"#{}\"", id), heading) + " ";
    body_ += element("section", fmt::format("id=\"{}\"", id), text_element("h2", "", heading) + "\n" + html) + "\n";
  }
  std::string html() const { return element("nav", "", links_) + "\n" + body_; }

 private:
  std::string links_, body_;
};

class Tiles {
 public:
  void add(const std::string& name, const std::string& value, const std::string& note = "") {
    const std::string small = note.empty() ? std::string() : text_element("small", "", note);
    tiles_ += element("div", "", text_element("dt", "", name) + element("dd", "", escape_html(value) + small));
  }
  std::string html() const { return tiles_.empty() ? tiles_ : element("dl", "class=\"tiles\"", tiles_) + "\n"; }

 private:
  std::string tiles_;
};

double score_of(const ReportedRun& run, const char* name) {
  return run.results.is_object() ? train::number_of(run.results, name) : std::nan("");
}

void add_scores(const ReportedRun& run, Tiles& tiles) {
  std::vector<train::MetricKind> kinds = run.record.score_kinds();
  std::ranges::reverse(kinds);  // losses, which a task lists first, are the least informative
  for (const train::MetricKind& kind : kinds) {
    const char* const name = kind.name.c_str();
    const std::string title = train::metric_title(kinds, kind.name);
    if (kind.larger_is_better) {
      const double score = score_of(run, name);
      if (std::isfinite(score)) tiles.add(title, fixed_text(score, 2), "of best/");
    } else {
      double least = std::nan("");
      for (const json& row : run.record.evaluations) least = std::fmin(least, train::number_of(row, name));
      if (std::isfinite(least)) tiles.add(title, fixed_text(least, 4), "the least");
    }
  }
}

void add_figures(const ReportedRun& run, Tiles& tiles) {
  const ComparedRun& figures = *run.figures;
  const std::size_t steps = run.record.done_steps(),
                    losses = std::min(run.record.steps.size(), train::RunRecord::recent_steps);
  tiles.add("Training loss", std::isfinite(figures.loss) ? fixed_text(figures.loss, 4) : "not finite",
            losses == 1 ? "of the only step" : fmt::format("mean of the last {}", count_of(losses, "step")));
  tiles.add("Training time", duration_text(figures.training_seconds), count_of(steps, "step"));
  if (std::isfinite(figures.rate)) {
    tiles.add("Speed", number_text(std::round(figures.rate)),
              fmt::format("{}/s, median step; {} over the training time", figures.work,
                          number_text(std::round(figures.mean_rate))));
  }
  if (figures.memory > 0.0) tiles.add("Memory", size_text(figures.memory), "of rank 0, at most");
}

std::string summary_html(const ReportedRun& run) {
  Tiles tiles;
  add_scores(run, tiles);
  if (run.figures) add_figures(run, tiles);
  if (const double hours = energy_kilowatt_hours(run); hours > 0.0) {
    tiles.add("Energy", fmt::format("{:.3g} kWh", hours), "of the GPUs");
  }
  return tiles.html();
}

std::string missing_html(const std::vector<ReportedRun>& runs, const std::vector<std::string>& problems) {
  std::string items;
  for (const ReportedRun& run : runs) {
    for (const std::string& text : run.missing) {
      items += text_element("li", "", runs.size() == 1 ? text : run.name + ": " + text);
    }
  }
  for (const std::string& text : problems) items += text_element("li", "", text);
  if (items.empty()) return {};
  return element("div", "class=\"missing\"", element("b", "", "What is missing") + element("ul", "", items)) + "\n";
}

/// `scores`: the metrics that have a column, the most informative first.
HtmlTable comparison_columns(const std::vector<train::MetricKind>& scores, const std::string& rate) {
  std::vector<std::string> headings = {"run", "ranks", "speedup", "efficiency"};
  for (const train::MetricKind& kind : scores) headings.push_back(column_heading(kind));
  headings.insert(headings.end(), {"loss", "median " + rate, "mean " + rate, "training", "epoch", "steps", "memory",
                                   "sent a step", "mode"});
  const std::size_t numbers = headings.size() - 2;
  return HtmlTable(std::move(headings), "l" + std::string(numbers, 'r') + "l");
}

/// Returns "F1 (%) and Exact match (%) are the last evaluation's, the loss is"; "The loss is" without scores.
std::string scores_note(const std::vector<train::MetricKind>& scores) {
  std::string names;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    names += i == 0 ? "" : i + 1 == scores.size() ? " and " : ", ";
    names += train::metric_title(scores, scores[i].name);
    if (!scores[i].unit.empty()) names += " (" + scores[i].unit + ")";
  }
  if (names.empty()) return "The loss is";
  return fmt::format("{} {} the last evaluation's, the loss is", names, scores.size() == 1 ? "is" : "are");
}

std::string comparison_note(const std::vector<train::MetricKind>& scores, const std::string& rate,
                            const std::string& work) {
  return text_element(
      "p", "class=\"note\"",
      fmt::format("{} are the median step's, and all {} over the training time; an epoch is estimated as the "
                  "median step's time times the steps of an epoch; memory and what is sent are rank 0's; "
                  "speedup and efficiency (speedup over the ratio of ranks) are those of the median step and count "
                  "from the first run on the fewest ranks. {} the mean of the last {} steps.",
                  rate, work, scores_note(scores), train::RunRecord::recent_steps));
}

std::vector<ComparedSetting> settings_of(const std::vector<ReportedRun>& runs) {
  std::vector<ComparedSetting> settings;
  for (const ReportedRun& run : runs) {
    settings.push_back({setting_text(run, "/resolved/mode"), setting_count(run.record, "/resolved/ranks").value_or(1),
                        run.figures ? std::vector{*run.figures} : std::vector<ComparedRun>{}, "no step"});
  }
  return settings;
}

/// Returns the cells of a run in the table of `mylos compare`. `work`: the unit of all runs; nullopt if they count
/// different work, because each cell then has its own unit.
std::vector<std::string> comparison_cells(const ReportedRun& run, std::size_t colour, const ComparisonLine& line,
                                          const std::vector<train::MetricKind>& scores,
                                          const std::optional<std::string>& work) {
  const ComparedRun figures = run.figures.value_or(ComparedRun{.rate = unknown_figure, .mean_rate = unknown_figure});
  const auto rate = [&](double value) {
    return number_text(std::round(value)) + (work || !std::isfinite(value) ? "" : " " + figures.work + "/s");
  };
  std::vector<std::string> cells = {legend_line(colour) + escape_html(run.name), std::to_string(line.ranks),
                                    fixed_text(line.speedup, 2), fixed_text(line.efficiency, 2)};
  for (const train::MetricKind& kind : scores) {
    const double value = line.metric(kind.name);
    cells.push_back(std::isfinite(value) ? metric_value_text(kind, value) : number_text(value));
  }
  cells.insert(cells.end(), {fixed_text(line.loss, 4), rate(figures.rate), rate(figures.mean_rate),
                             run.figures ? duration_text(line.training_seconds) : "-",
                             std::isfinite(line.epoch_seconds) ? duration_text(line.epoch_seconds) : "-",
                             count_text(run.record.done_steps()), line.memory > 0.0 ? size_text(line.memory) : "-",
                             size_text(line.sent), text_element("span", "class=\"whole\"", line.strategy)});
  return cells;
}

/// Returns the table of `mylos compare` for existing runs.
std::string comparison_html(const std::vector<ReportedRun>& runs) {
  const std::vector<ComparedSetting> settings = settings_of(runs);
  const std::optional<std::string> work = common_work(settings);
  std::vector<train::MetricKind> scores = compared_metrics(settings);
  std::ranges::reverse(scores);  // in the order of the tiles of a single run
  const std::string rate = work ? *work + "/s" : "rate";
  HtmlTable table = comparison_columns(scores, rate);
  const std::vector<ComparisonLine> lines = comparison_lines(settings);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    table.add_html(comparison_cells(runs[i], i, lines[i], scores, work));
  }
  return table.html() + comparison_note(scores, rate, work.value_or("work"));
}

std::string state_text(const ReportedRun& run) {
  const train::RunRecord& record = run.record;
  if (record.finished) return fmt::format("finished after {}", count_of(record.done_steps(), "step"));
  return "not finished: " + progress_text(record);
}

std::string title_of(const std::vector<ReportedRun>& runs, const ReportSettings& settings) {
  if (runs.empty()) return settings.batches->model + ", micro-batches";
  std::string title = runs.front().name;
  if (runs.size() > 1) title += fmt::format(" and {}", count_of(runs.size() - 1, "other run"));
  return title;
}

std::string head_html(const std::string& title) {
  return element("head", "",
                 std::string("\n<meta charset=\"utf-8\"/>\n") + report_mark +
                     "\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n" +
                     text_element("title", "", title + " - mylos report") + "\n" + element("style", "", report_style)) +
         "\n";
}

std::string header_html(const std::vector<ReportedRun>& runs, const std::string& title) {
  const std::time_t now = std::time(nullptr);
  const std::string made = fmt::format("Made on {:%Y-%m-%d at %H:%M} UTC by mylos {}, commit {}.", fmt::gmtime(now),
                                       build_info().version, build_info().commit);
  const std::string state = runs.size() == 1 ? "A training run, " + state_text(runs.front()) + ". " : "";
  return text_element("h1", "", title) + text_element("p", "class=\"quiet\"", state + made) + "\n";
}

/// Adds the sections that are read from the files of the runs, of which there must be at least one.
void add_runs(const std::vector<ReportedRun>& runs, const ReportSettings& settings, Page& page) {
  const bool one = runs.size() == 1;
  page.add("run", "The run", one ? description_html(runs.front()) : "");
  page.add("runs", "The runs", one ? "" : comparison_html(runs));
  page.add("differences", "What differs", one ? "" : differences_html(runs));
  page.add("curves", "Curves", curves_html(runs));
  page.add("time", "Where the time goes", time_html(runs, settings.kernels));
  page.add("gpus", "GPUs", gpus_html(runs));
}

}  // namespace

std::string report_html(const std::vector<ReportedRun>& runs, const ReportSettings& settings) {
  const std::string title = title_of(runs, settings);
  const tasks::RunReport samples = report_of_tasks(runs, settings.between);
  Page page;
  if (!runs.empty()) add_runs(runs, settings, page);
  for (const tasks::ReportSection& section : samples.sections) {
    page.add(section.id, section.heading, section_html(section));
  }
  page.add("batches", "Micro-batches", settings.batches ? batches_html(*settings.batches) : "");
  std::string body = header_html(runs, title) + (runs.size() == 1 ? summary_html(runs.front()) : "");
  body += missing_html(runs, samples.problems) + page.html();
  return "<!DOCTYPE html>\n" +
         element("html", "lang=\"en\"", "\n" + head_html(title) + element("body", "", "\n" + body)) + "\n";
}

}  // namespace mylos::app
