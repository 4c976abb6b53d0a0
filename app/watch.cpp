#include "app/commands.hpp"
#include "app/screen.hpp"
#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "app/watch_gpus.hpp"
#include "train/gpu_monitor.hpp"
#include "train/process.hpp"
#include "train/quantities.hpp"
#include "train/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

/// mylos watch: a run seen from the login node, through nothing but its files.
namespace mylos::app {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

double mean_loss(const train::RunRecord& run) {
  constexpr std::size_t most = 50;
  const std::size_t count = std::min(run.steps.size(), most);
  double sum = 0.0;
  for (std::size_t i = run.steps.size() - count; i < run.steps.size(); ++i)
    sum += train::number_of(run.steps[i], "loss");
  return sum / static_cast<double>(std::max<std::size_t>(count, 1));
}

std::string ranks_text(const train::RunRecord& run) {
  const json resolved = run.run.value("resolved", json::object());
  return fmt::format("{} on {}, {}, {}", train::count_of(resolved.value("ranks", std::size_t{1}), "rank"),
                     train::count_of(resolved.value("nodes", std::size_t{1}), "node"),
                     resolved.value("mode", "replicated"), run.run.value("precision", "float"));
}

std::string evaluation_text(const json& row) {
  train::Metrics metrics;
  for (const char* name : {"validation_loss", "exact", "f1"}) {
    if (row.contains(name) && row[name].is_number()) metrics.emplace_back(name, row[name].get<double>());
  }
  return fmt::format("step {}: {}{}", row["step"].get<std::size_t>(), train::metrics_text(metrics),
                     row.value("best", false) ? ", the best so far" : "");
}

/// A run that writes nothing for a minute and ten of its steps may have ended or hang; its files cannot say which.
bool is_quiet(const train::RunRecord& run) {
  constexpr double least = 60.0, steps = 10.0;
  const double pace = run.steps.empty() ? 0.0 : run.steps.back().value("seconds", 0.0);
  return !run.finished && run.age > std::max(least, steps * pace);
}

std::string state_text(const train::RunRecord& run) {
  if (run.finished) return "finished";
  if (is_quiet(run)) return fmt::format("nothing written for {}: see the job's log", train::duration_text(run.age));
  const double left = run.seconds_left();
  return left < 0.0 ? "has begun" : fmt::format("{} left", train::duration_text(left));
}

std::string checkpoint_text(const train::RunRecord& run) {
  if (run.checkpoint.empty()) return "none";
  return fmt::format("{}, {}, {} ago", run.checkpoint, train::bytes_text(run.checkpoint_bytes),
                     train::duration_text(run.checkpoint_age));
}

/// What is known, a line each.
std::string picture(const train::RunRecord& run, const train::GpuFollower& gpus) {
  const std::size_t planned = run.planned_steps(), done = run.done_steps();
  const double share = planned == 0 ? 0.0 : 100.0 * static_cast<double>(done) / static_cast<double>(planned);
  std::string text = watch_line("run", fmt::format("{}: {}", run.directory.string(), state_text(run)));
  text += watch_line("ranks", ranks_text(run));
  text += watch_line("steps",
                     fmt::format("{} of {}, {:.1f} %", train::count_text(done), train::count_text(planned), share));
  if (!run.steps.empty()) {
    const json& last = run.steps.back();
    text += watch_line(
        "loss", fmt::format("{:.4f}, {:.4f} over the last 50 steps; gradient norm {:.3g}, learning rate {:.3g}",
                            train::number_of(last, "loss"), mean_loss(run), train::number_of(last, "gradient_norm"),
                            last.value("learning_rate", 0.0)));
    text += watch_line("speed",
                       fmt::format("{} tokens/s, {} on a rank",
                                   train::count_text(static_cast<std::size_t>(last.value("tokens_per_second", 0.0))),
                                   train::bytes_text(last.value("memory", std::size_t{0}))));
  }
  if (!run.evaluations.empty()) text += watch_line("evaluation", evaluation_text(run.evaluations.back()));
  text += watch_line("checkpoint", checkpoint_text(run));
  if (const auto joules = gpus.joules()) text += watch_line("energy", train::energy_text(*joules));
  return run.finished ? text : text + gpu_lines(gpus.gpus(), train::seconds_since_1970());
}

Json to_json(const train::RunRecord& run, const train::GpuFollower& gpus) {
  const auto joules = gpus.joules();
  return {{"run", run.directory.string()},
          {"finished", run.finished},
          {"quiet", is_quiet(run)},
          {"age", run.age},
          {"step", run.done_steps()},
          {"steps", run.planned_steps()},
          {"seconds_left", run.finished ? 0.0 : run.seconds_left()},
          {"last", run.steps.empty() ? json(nullptr) : run.steps.back()},
          {"evaluation", run.evaluations.empty() ? json(nullptr) : run.evaluations.back()},
          {"checkpoint", run.checkpoint.empty() ? json(nullptr) : json(run.checkpoint)},
          {"checkpoint_bytes", run.checkpoint.empty() ? json(nullptr) : json(run.checkpoint_bytes)},
          {"checkpoint_age", run.checkpoint.empty() ? json(nullptr) : json(run.checkpoint_age)},
          {"energy_kwh", joules ? json(train::kilowatt_hours(*joules)) : json(nullptr)},
          {"gpus", gpus_json(gpus.gpus())}};
}

/// Looks at the nodes' files no more often than they grow: of a large run there are many.
void update_when_due(train::GpuFollower& gpus, const train::RunRecord& run, double& due) {
  const double now = train::seconds_since_1970();
  if (now < due && !run.finished) return;
  gpus.update();
  const std::size_t nodes = run.run.value("resolved", json::object()).value("nodes", std::size_t{1});
  due = now + train::gpu_sample_interval(nodes).count();
}

}  // namespace

int run_watch(const Arguments& arguments) {
  const std::filesystem::path directory = arguments.positional.front();
  train::RunRecord run = train::read_run(directory);
  train::GpuFollower gpus(directory);
  double gpus_due = 0.0;
  update_when_due(gpus, run, gpus_due);
  if (arguments.json) {
    print(to_json(run, gpus).dump(2) + "\n");
    return 0;
  }
  Screen screen;
  screen.show(picture(run, gpus), run.done_steps());
  while (!run.finished && !arguments.once) {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.refresh));
    run = train::read_run(directory);
    update_when_due(gpus, run, gpus_due);
    // The last picture is shown wherever it goes.
    screen.show(picture(run, gpus), run.done_steps() + (run.finished ? 1 : 0));
  }
  return 0;
}

}  // namespace mylos::app
