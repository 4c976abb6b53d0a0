#include "app/options/tool_options.hpp"
#include "app/report/html.hpp"
#include "app/report/report_run.hpp"
#include "app/report/watch_gpus.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/process/process.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/screen.hpp"
#include "core/base/text/standard_output.hpp"
#include "train/monitor/gpu_monitor.hpp"
#include "train/monitor/run_record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <thread>

/// mylos watch: shows a run from a login node, using only its files.
namespace mylos::app {
namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Returns the text at a JSON pointer into run.json. Returns `otherwise` if it is missing or has another type, as in
/// files of another version.
std::string text_of(const train::RunRecord& run, const char* pointer, const char* otherwise) {
  const json value = setting_of(run, pointer);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

std::string ranks_text(const train::RunRecord& run) {
  return fmt::format("{} on {}, {}, {}", count_of(setting_count(run, "/resolved/ranks").value_or(1), "rank"),
                     count_of(setting_count(run, "/resolved/nodes").value_or(1), "node"),
                     text_of(run, "/resolved/mode", "replicated"), text_of(run, "/precision", "float"));
}

std::string evaluation_text(const json& row, std::span<const train::MetricKind> kinds) {
  train::Metrics metrics;
  for (const train::MetricKind& kind : kinds) {
    const double value = train::number_of(row, kind.name.c_str());
    if (std::isfinite(value)) metrics.emplace_back(kind.name, value);
  }
  return fmt::format("step {}: {}{}", row["step"].get<std::size_t>(), train::metrics_text(metrics),
                     row.value("best", json()) == true ? ", the best so far" : "");
}

std::string state_text(const train::RunRecord& run) {
  if (run.finished) return "finished";
  if (!run.ended.empty()) return run.ended;
  if (run.is_quiet()) return fmt::format("nothing written for {}: see the job's log", duration_text(run.age));
  const double left = run.seconds_left();
  return left < 0.0 ? "has begun" : fmt::format("{} left", duration_text(left));
}

std::string checkpoint_text(const train::RunRecord& run) {
  if (run.checkpoint.empty()) return "none";
  return fmt::format("{}, {}, {} ago", run.checkpoint, bytes_text(run.checkpoint_bytes),
                     duration_text(run.checkpoint_age));
}

std::string steps_text(const train::RunRecord& run) {
  const std::size_t planned = run.planned_steps(), done = run.done_steps();
  if (planned == 0) return fmt::format("{} of unknown", count_text(done));
  return fmt::format("{} of {}, {:.1f} %", count_text(done), count_text(planned),
                     100.0 * static_cast<double>(done) / static_cast<double>(planned));
}

/// Returns a number in a row as formatted by `text`; "-" if it is missing.
std::string shown(const json& row, const char* key, const std::function<std::string(double)>& text) {
  const double value = train::number_of(row, key);
  return std::isfinite(value) ? text(value) : "-";
}

std::string loss_text(const train::RunRecord& run) {
  const json& last = run.steps.back();
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  const auto loss = [](double value) { return std::isfinite(value) ? fixed_text(value, 4) : "nan"; };
  return fmt::format("{}, {} over the last {} steps; gradient norm {}, learning rate {}",
                     loss(train::number_of(last, "loss")), loss(run.recent_loss()), train::RunRecord::recent_steps,
                     shown(last, "gradient_norm", number), shown(last, "learning_rate", number));
}

std::string speed_text(const train::RunRecord& run) {
  constexpr double most = 1e15;
  const auto whole = [](double rate) {
    return rate >= 0.0 && rate < most ? count_text(static_cast<std::size_t>(rate)) : number_text(rate);
  };
  const json& last = run.steps.back();
  const std::string work = run.work();
  return fmt::format("{} {}/s, {} on a rank", shown(last, train::rate_key(work).c_str(), whole), work,
                     shown(last, "memory", size_text));
}

/// Returns the state of the run, one line per item.
std::string picture(const train::RunRecord& run, const train::GpuFollower& gpus) {
  std::string text = watch_line("run", fmt::format("{}: {}", run.directory.string(), state_text(run)));
  text += watch_line("ranks", ranks_text(run));
  text += watch_line("steps", steps_text(run));
  if (!run.steps.empty()) {
    text += watch_line("loss", loss_text(run));
    text += watch_line("speed", speed_text(run));
  }
  if (!run.evaluations.empty())
    text += watch_line("evaluation", evaluation_text(run.evaluations.back(), run.metric_kinds()));
  text += watch_line("checkpoint", checkpoint_text(run));
  if (const auto joules = gpus.joules()) text += watch_line("energy", energy_text(*joules));
  return run.has_ended() ? text : text + node_and_gpu_lines(gpus.nodes(), gpus.gpus(), seconds_since_1970());
}

OrderedJson to_json(const train::RunRecord& run, const train::GpuFollower& gpus) {
  const auto joules = gpus.joules();
  return {{"run", run.directory.string()},
          {"finished", run.finished},
          {"ended", run.ended.empty() ? json(nullptr) : json(run.ended)},
          {"quiet", run.is_quiet()},
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
          {"nodes", nodes_json(gpus.nodes())},
          {"gpus", gpus_json(gpus.gpus())}};
}

/// The run and its GPUs, read repeatedly.
class Watched {
 public:
  explicit Watched(const std::filesystem::path& directory)
      : follower_(directory, train::RunRecord::recent_steps), gpus_(directory) {}

  const train::RunRecord& update() {
    const train::RunRecord& run = follower_.update();
    ensure(run.problem.empty(), run.problem);
    update_gpus(run);
    return run;
  }
  const train::GpuFollower& gpus() const { return gpus_; }

 private:
  /// Reads the nodes' files no more often than they grow, because a large run has many of them.
  void update_gpus(const train::RunRecord& run) {
    const double now = seconds_since_1970();
    if (now < due_ && !run.has_ended()) return;
    gpus_.update();
    due_ = now + train::gpu_sample_interval(setting_count(run, "/resolved/nodes").value_or(1)).count();
  }

  train::RunFollower follower_;
  train::GpuFollower gpus_;
  double due_ = 0.0;
};

}  // namespace

int run_watch(const Arguments& arguments) {
  Watched watched(arguments.positional.front());
  const train::RunRecord& run = watched.update();
  if (arguments.json) {
    print_indented_json(to_json(run, watched.gpus()));
    return 0;
  }
  Screen screen;
  screen.show(picture(run, watched.gpus()), run.done_steps());
  while (!run.has_ended() && !arguments.watch->once) {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.watch->refresh));
    watched.update();
    // The final state is shown also if the output is not a terminal.
    screen.show(picture(run, watched.gpus()), run.done_steps() + (run.has_ended() ? 1 : 0));
  }
  return 0;
}

}  // namespace mylos::app
