#include "app/options/plan_options.hpp"
#include "app/options/train_options.hpp"
#include "app/plan/job_script.hpp"
#include "app/plan/plan_target.hpp"
#include "app/report/compared_runs.hpp"
#include "app/run_commands.hpp"
#include "app/sweep/sweep_points.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/process/subprocess.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"
#include "train/monitor/run_record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// mylos sweep: writes a job array whose tasks train with different options, and the table of their results.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// A point. Its name is that of its directory, its metrics are those of its best evaluation, and its loss is the mean
/// over its last steps.
struct SweepLine : ComparedRun {
  nlohmann::ordered_json varied;  ///< the options of the point that vary
  std::string state;              ///< "finished", "at step 120 of 400", ...
  bool finished = false;
  std::string best_by;  ///< its --best-by
};

std::string state_of(const train::RunRecord& run) {
  if (run.finished) return "finished";
  if (run.run.empty() && run.steps.empty()) return "not begun";
  const std::string progress = fmt::format("step {} of {}", run.done_steps(), run.planned_steps());
  if (!run.ended.empty()) return fmt::format("stopped at {}, {}", progress, run.ended);
  if (!run.is_quiet()) return "at " + progress;
  return fmt::format("stopped or hangs at {}: nothing written for {}", progress, duration_text(run.age));
}

/// Returns the metrics of the last evaluation that was the best so far.
train::Metrics metrics_of(const train::RunRecord& run) {
  train::Metrics metrics;
  const std::optional<std::size_t> best = run.best_step();
  const auto row =
      std::ranges::find_if(run.evaluations, [&](const auto& each) { return best && each["step"] == *best; });
  if (row == run.evaluations.end()) return metrics;
  for (const train::MetricKind& kind : run.metric_kinds()) {
    const double value = train::number_of(*row, kind.name.c_str());
    if (std::isfinite(value)) metrics.emplace_back(kind.name, value);
  }
  return metrics;
}

SweepLine line_of_point(const std::filesystem::path& sweep, SweepPoint point) {
  train::RunFollower follower(point_run(sweep, point.name));
  const train::RunRecord& run = follower.update();
  SweepLine line;
  line.name = std::move(point.name);
  line.varied = std::move(point.varied);
  line.state = state_of(run);
  line.finished = run.finished;
  line.kinds = run.metric_kinds();
  line.metrics = metrics_of(run);
  const auto best_by = run.run.find("best-by");
  if (best_by != run.run.end() && best_by->is_string()) line.best_by = best_by->get<std::string>();
  const bool has_steps = !run.steps.empty();
  line.loss = has_steps ? run.recent_loss() : unknown_figure;
  line.training_seconds = has_steps ? compared_run(run).training_seconds : unknown_figure;
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
  return kind.larger_is_better ? -line.metric(kind.name) : line.metric(kind.name);
}

/// Returns the names of the options that vary, in the order of the points.
std::vector<std::string> varied_names(std::vector<SweepLine> lines) {
  std::ranges::sort(lines, {}, &SweepLine::name);
  std::vector<std::string> names;
  for (const SweepLine& line : lines) {
    for (const auto& [name, value] : line.varied.items()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// Returns a line for each point of the sweep in a directory. Lines are ordered by the metric that selects best/, or by
/// the loss if nothing was evaluated, the best first; points without one follow. Errors: those of read_sweep.
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
    if (std::isfinite(line.training_seconds)) object["training_seconds"] = line.training_seconds;
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
    for (const train::MetricKind& kind : kinds) cells.push_back(metric_value_text(kind, line.metric(kind.name)));
    cells.push_back(decimal(line.loss, 4));
    cells.push_back(decimal(line.training_seconds / 60.0, 2));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      table.columns[i].least_width = std::max(table.columns[i].least_width, cells[i].size());
    }
    cells.push_back(line.state);
    table.rows.push_back(std::move(cells));
  }
  return table_text(table, format);
}

/// Returns the job script's name for a scheduler.
std::string script_name(std::string_view scheduler) { return scheduler == "slurm" ? "sweep.sbatch" : "sweep.pbs"; }

/// Returns --job, or the scheduler whose command is there.
std::string scheduler_of(const Arguments& arguments) {
  if (!arguments.plan->job.empty()) return arguments.plan->job;
  const auto is_there = [](const char* program) {
    return run_process({"/bin/sh", "-c", fmt::format("command -v {}", program)}).exit_code == 0;
  };
  return is_there("qsub") && !is_there("sbatch") ? "pbs" : "slurm";
}

std::string submit_line(std::string_view scheduler, const fs::path& sweep, std::size_t points) {
  const std::string script = shell_word((sweep / script_name(scheduler)).string());
  return scheduler == "slurm" ? "sbatch " + script : fmt::format("qsub -J 0-{} {}", points - 1, script);
}

/// Writes the job script. Of an existing one, which may have lines of the site, only the array's range is replaced.
void write_script(const Arguments& arguments, const std::string& scheduler, const fs::path& sweep, std::size_t points) {
  const PlanArguments& target = *arguments.plan;
  const fs::path file = sweep / script_name(scheduler);
  if (fs::exists(file) && !arguments.overwrite) {
    std::string script = read_text(file);
    if (script.find("\n#SBATCH --array=") != std::string::npos) set_array(script, points);
    write_text(file, script);
    return log_line(fmt::format("{} is kept, but for the array's range; --overwrite writes it anew", file.string()));
  }
  constexpr double two_hours = 7200.0;
  Arguments machine = arguments;
  if (runs_on_host) machine.plan->gpu = "cpu";
  write_text(file, job_script(scheduler, {.nodes = target.nodes,
                                          .ranks_per_node = target.gpus / target.nodes,
                                          .threads = planned_threads(machine),
                                          .gpus = !runs_on_host,
                                          .walltime = arguments.train->walltime.value_or(two_hours),
                                          .sweep = sweep.string(),
                                          .points = points}));
}

int write_array(const Arguments& arguments) {
  if (arguments.run.engine.output.empty()) throw UsageError("sweep needs --output; see mylos sweep --help");
  const auto [gpus, nodes] = std::pair(arguments.plan->gpus, arguments.plan->nodes);
  if (gpus % nodes != 0) {
    throw UsageError(
        fmt::format("--gpus {}: expected a multiple of --nodes {}; --gpus counts the ranks of all nodes", gpus, nodes));
  }
  const fs::path sweep = (fs::absolute(arguments.run.engine.output) / "").lexically_normal().parent_path();
  Sweep read = read_sweep_settings(arguments.positional.front(), sweep);
  for (const std::string& remark : read.remarks) log_line(remark);
  join_existing_sweep(sweep, read.points);
  const std::size_t points = read.points.size();
  const std::string scheduler = scheduler_of(arguments);
  write_sweep(sweep, read.points);
  write_script(arguments, scheduler, sweep, points);
  print(named_line("points", fmt::format("{} in {}", points, (sweep / "points").string())));
  print(named_line("submit", submit_line(scheduler, sweep, points)));
  print(named_line("table", "mylos sweep " + shell_word(sweep.string())));
  return 0;
}

/// Writes the table, and prints it. Returns 1 if a point is not finished.
int show_table(const Arguments& arguments, const fs::path& sweep) {
  const std::vector<SweepLine> lines = sweep_lines(sweep);
  write_text(sweep / "table.json", sweep_json(lines).dump(2) + "\n");
  write_text(sweep / "table.md", sweep_table(lines, TableFormat::markdown));
  write_text(sweep / "table.csv", sweep_table(lines, TableFormat::csv));
  print(arguments.json ? sweep_json(lines).dump() + "\n" : sweep_table(lines, TableFormat::text));
  const std::size_t finished = finished_points(lines);
  if (finished == lines.size()) return 0;
  const std::string scheduler = fs::exists(sweep / script_name("pbs")) ? "pbs" : "slurm";
  log_line(fmt::format("{} of {} are finished; once no task is left, submit the array again for the others: {}",
                       finished, count_of(lines.size(), "point"), submit_line(scheduler, sweep, lines.size())));
  return 1;
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  const fs::path& given = arguments.positional.front();
  std::error_code none;
  if (!fs::is_directory(given, none)) return write_array(arguments);
  if (!arguments.run.engine.output.empty()) {
    throw UsageError(
        fmt::format("sweep: {} is a directory; leave out --output for the table of its sweep, or give the "
                    "file with the settings",
                    given.string()));
  }
  return show_table(arguments, (fs::absolute(given) / "").lexically_normal().parent_path());
}

}  // namespace mylos::app
