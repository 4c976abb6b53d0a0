#include "app/plan/job_script.hpp"
#include "app/plan/plan_target.hpp"
#include "app/run_commands.hpp"
#include "app/sweep/sweep_points.hpp"
#include "app/sweep/sweep_table.hpp"
#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/quantities.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/subprocess.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

/// mylos sweep: writes a job array whose tasks train with different options, and the table of their results.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;

/// Returns the job script's name for a scheduler.
std::string script_name(std::string_view scheduler) { return scheduler == "slurm" ? "sweep.sbatch" : "sweep.pbs"; }

/// Returns --job, or the scheduler whose command is there.
std::string scheduler_of(const Arguments& arguments) {
  if (!arguments.plan.job.empty()) return arguments.plan.job;
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
  const PlanArguments& target = arguments.plan;
  const fs::path file = sweep / script_name(scheduler);
  if (fs::exists(file) && !arguments.overwrite) {
    std::string script = read_text(file);
    if (script.find("\n#SBATCH --array=") != std::string::npos) set_array(script, points);
    write_text(file, script);
    return log_line(fmt::format("{} is kept, but for the array's range; --overwrite writes it anew", file.string()));
  }
  constexpr double two_hours = 7200.0;
  Arguments machine = arguments;
  if (runs_on_host) machine.plan.gpu = "cpu";
  write_text(file, job_script(scheduler, {.nodes = target.nodes,
                                          .ranks_per_node = target.gpus / target.nodes,
                                          .threads = planned_threads(machine),
                                          .gpus = !runs_on_host,
                                          .walltime = arguments.train.walltime.value_or(two_hours),
                                          .sweep = sweep.string(),
                                          .points = points}));
}

int write_array(const Arguments& arguments) {
  if (arguments.run.engine.output.empty()) throw UsageError("sweep needs --output; see mylos sweep --help");
  const auto [gpus, nodes] = std::pair(arguments.plan.gpus, arguments.plan.nodes);
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
  std::vector<SweepLine> lines = sweep_lines(sweep);
  // Tasks of the array write the table at their ends. If a point has finished meanwhile, it may have written a newer
  // one.
  for (std::size_t before = lines.size() + 1; before != finished_points(lines); lines = sweep_lines(sweep)) {
    before = finished_points(lines);
    write_text(sweep / "table.json", sweep_json(lines).dump(2) + "\n");
    write_text(sweep / "table.md", sweep_table(lines, TableFormat::markdown));
    write_text(sweep / "table.csv", sweep_table(lines, TableFormat::csv));
  }
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
