#include "app/options/consistency.hpp"
#include "app/options/options.hpp"
#include "app/plan/job_script.hpp"
#include "app/plan/plan_tables.hpp"
#include "app/plan/plan_target.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "train/engine/length_stream.hpp"
#include "train/planning/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// mylos plan: what fits and how long it takes. Starts neither Kokkos nor MPI.
namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;
using parallel::ModeKind;

std::vector<train::ModePlan> plan_modes(const Arguments& arguments, const train::Workload& workload,
                                        const train::PlanTarget& target) {
  std::vector<ModeKind> modes = train::possible_modes(target.ranks);
  if (arguments.run.engine.parallel.mode && !arguments.every_mode) modes = {*arguments.run.engine.parallel.mode};
  std::vector<train::ModePlan> plans;
  for (const ModeKind mode : modes) {
    train::TrainConfig config = arguments.run.engine;
    config.parallel.mode = mode;
    if (mode != ModeKind::hybrid && modes.size() > 1) config.parallel.shard_size = 0;
    plans.push_back(train::plan_run(workload, config, target));
  }
  return plans;
}

/// The fastest that fits; of those within 2 % of it the first, which exchanges least.
const train::ModePlan* recommended(const std::vector<train::ModePlan>& plans) {
  constexpr double alike = 1.02;
  double fastest = 0.0;
  for (const train::ModePlan& plan : plans) {
    if (plan.fits && (fastest == 0.0 || plan.job() < fastest)) fastest = plan.job();
  }
  const auto found = std::ranges::find_if(
      plans, [&](const train::ModePlan& plan) { return plan.fits && plan.job() <= alike * fastest; });
  return found == plans.end() ? nullptr : &*found;
}

/// Name and value of an option; a switch has no value.
using PlannedOption = std::pair<std::string, std::string>;

/// The value as it is typed; nothing where it is unset or a switch that is off.
std::optional<std::string> value_as_typed(const Json& value) {
  if (value.is_null() || value == false) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value == true ? "" : value.dump();
}

/// The options of train that make the planned run: all that plan was given and train has, and what a plan settles.
std::vector<PlannedOption> planned_options(const Arguments& told, const train::ModePlan& plan) {
  Arguments arguments = told;
  train::TrainConfig& engine = arguments.run.engine;
  engine.parallel.mode = plan.mode;
  if (plan.mode != ModeKind::hybrid) engine.parallel.shard_size = 0;
  if (engine.micro_tokens == 0 && engine.accumulation == 0) engine.micro_batch = plan.memory.largest.samples;
  std::set<std::string> shown = {"model", "mode", "precision", "batch", "micro-batch", "max-length"};
  shown.insert(told.sources.given.begin(), told.sources.given.end());
  shown.erase(engine.steps > 0 ? "epochs" : "steps");
  shown.insert(engine.steps > 0 ? "steps" : "epochs");
  std::vector<PlannedOption> options;
  for (const Option& option : option_table(*told.task)) {
    const bool is_shared = option.belongs_to(plan_command) && option.belongs_to(train_command) && option.print;
    if (!is_shared || !shown.contains(option.name)) continue;
    if (const auto value = value_as_typed(option.print(arguments))) options.emplace_back(option.name, *value);
  }
  if (arguments.plan.gpu != "cpu" && arguments.plan.gpus > 1) options.emplace_back("communicator", "nccl");
  return options;
}

std::string told_data(const Arguments& arguments) {
  return arguments.data.empty() ? "" : std::filesystem::absolute(arguments.data).lexically_normal().string();
}

std::string typed_words(const PlannedOption& option) {
  return fmt::format(" --{}{}{}", option.first, option.second.empty() ? "" : " ",
                     option.second.empty() ? "" : shell_word(option.second));
}

/// The recommended run, as it is started inside a job. Without data it is the one whose windows were counted.
std::string launched_line(const Arguments& arguments, const tasks::PlannedRun& run, const train::ModePlan& plan) {
  const PlanArguments& target = arguments.plan;
  const std::size_t of_node = target.gpus / target.nodes;
  const std::string gpus = target.gpu == "cpu" ? "" : fmt::format(" --gpus-per-node={}", of_node);
  std::string line = fmt::format("srun --mpi=pmix --nodes={} --ntasks-per-node={} --cpus-per-task={}{} mylos train",
                                 target.nodes, of_node, planned_threads(arguments), gpus);
  line += arguments.data.empty() ? " " + run.data_options : " --train " + shell_word(told_data(arguments));
  line += " --output run";
  for (const PlannedOption& option : planned_options(arguments, plan)) line += typed_words(option);
  return line;
}

/// A third more than predicted and ten minutes, in steps of ten minutes.
double walltime_of(const train::ModePlan& plan) {
  constexpr double margin = 1.3, least = 600.0, step = 600.0;
  return std::ceil((margin * plan.job() + least) / step) * step;
}

Json json_of(const train::ModePlan& plan, const train::WorkKind& work) {
  const train::MemoryPlan& memory = plan.memory;
  Json efficiency;
  for (const auto& [count, share] : plan.efficiency) efficiency[std::to_string(count)] = share;
  return {{"mode", to_string(plan.mode)},
          {"fits", plan.fits},
          {"obstacle", plan.fits ? Json(nullptr) : Json(plan.obstacle)},
          {"memory",
           {{"peak", memory.peak()},
            {"program", memory.program},
            {"values", memory.values},
            {"gradients", memory.gradients},
            {"exchange", memory.exchange},
            {"optimizer", memory.optimizer},
            {"activations", memory.activations},
            {"operands", memory.workspace + memory.scratch},
            {"output", memory.output}}},
          {"micro_batch", memory.largest.samples},
          {"asked_micro_batch", memory.asked},
          {"largest_micro_batch", plan.largest},
          {"step_seconds", plan.step.total()},
          {"compute_seconds", plan.step.compute},
          {"optimizer_seconds", plan.step.optimizer},
          {"exchange_seconds", plan.step.exchange},
          {"exposed_seconds", plan.step.exposed},
          {"sent_bytes", plan.step.sent},
          {train::rate_key(work.name), work.count(plan.tokens) / plan.step.total()},
          {"training_seconds", plan.training},
          {"checkpoint_seconds", plan.checkpoints},
          {"job_seconds", plan.job()},
          {"efficiency", efficiency}};
}

void print_json(const Arguments& arguments, const tasks::PlannedRun& run, const train::PlanTarget& target,
                const std::vector<train::ModePlan>& plans) {
  const train::ModePlan* best = recommended(plans);
  Json modes = Json::array();
  for (const train::ModePlan& plan : plans) modes.push_back(json_of(plan, run.work));
  const Json result = {{"model", run.name},
                       {"data", run.data},
                       {"gpu", target.machine.name},
                       {"gpus", target.ranks.ranks},
                       {"nodes", target.ranks.nodes},
                       {"memory", target.machine.memory},
                       {"precision", to_string(arguments.run.engine.precision)},
                       {"batch", arguments.run.task.batch},
                       {"rate", target.rate.origin},
                       {"modes", modes},
                       {"recommended", best == nullptr ? Json(nullptr) : Json(launched_line(arguments, run, *best))}};
  print_indented_json(result);
}

void print_text(const Arguments& arguments, const tasks::PlannedRun& run, const train::PlanTarget& target,
                const train::Workload& workload, const std::vector<train::ModePlan>& plans) {
  const train::Machine& machine = target.machine;
  print(named_line("model", fmt::format("{}: {}, {}", run.name, count_of(workload.model.table().size(), "parameter"),
                                        to_string(arguments.run.engine.precision))));
  print(named_line("data", run.data));
  print(named_line(
      "machine",
      fmt::format("{} x {} on {}, {} each, of which {} are kept free; {:.3g} GB/s between nodes, {:.3g} inside",
                  target.ranks.ranks, machine.name, count_of(target.ranks.nodes, "node"), bytes_text(machine.memory),
                  bytes_text(machine.reserved), 1e-9 * target.network.bandwidth, 1e-9 * machine.link)));
  print(named_line("rate", target.rate.origin) + "\n");
  print_tables(plans, run.work);
  for (const train::ModePlan& plan : plans) {
    if (!plan.fits) print(fmt::format("\n{}: {}\n", to_string(plan.mode), plan.obstacle));
  }
  if (const train::ModePlan* best = recommended(plans)) {
    print("\n" + named_line("run", launched_line(arguments, run, *best)));
  }
}

void print_job(const Arguments& arguments, const train::ModePlan& plan) {
  const PlanArguments& target = arguments.plan;
  Job job{.nodes = target.nodes,
          .ranks_per_node = target.gpus / target.nodes,
          .threads = planned_threads(arguments),
          .gpus = target.gpu != "cpu",
          .walltime = walltime_of(plan),
          .train = told_data(arguments)};
  // What the script has a variable for; the rest stands in its OPTIONS.
  const std::map<std::string, std::string*> variables = {{"model", &job.model},
                                                         {"mode", &job.mode},
                                                         {"precision", &job.precision},
                                                         {"checkpoint-every", &job.checkpoints}};
  for (const PlannedOption& option : planned_options(arguments, plan)) {
    const auto variable = variables.find(option.first);
    if (variable != variables.end()) *variable->second = option.second;
    if (variable == variables.end()) job.options += typed_words(option).substr(job.options.empty() ? 1 : 0);
  }
  print(job_script(target.job, job));
}

}  // namespace

int run_plan(const Arguments& told) {
  Arguments arguments = told;
  if (arguments.model.empty()) throw UsageError("plan needs --model; see mylos plan --help");
  if (!arguments.plan.job.empty() && arguments.json) {
    throw UsageError("--job and --json exclude each other; give one of them");
  }
  settle_batch(arguments, arguments.plan.gpus);
  const tasks::PlannedRun run =
      arguments.task->plan(arguments.model, arguments.data, arguments.run, arguments.sources, log_line);
  arguments.model = run.model;
  arguments.run = run.config;
  const train::PlanTarget target = make_target(arguments, *run.network);
  const train::LengthStream samples(run.lengths, arguments.run.task.batch, arguments.run.engine.seed, run.work);
  const train::Workload workload(*run.network, samples);
  const std::vector<train::ModePlan> plans = plan_modes(arguments, workload, target);
  const train::ModePlan* best = recommended(plans);
  if (!arguments.plan.job.empty()) {
    if (best == nullptr) fail(plans.front().obstacle);
    print_job(arguments, *best);
  } else if (arguments.json) {
    print_json(arguments, run, target, plans);
  } else {
    print_text(arguments, run, target, workload, plans);
  }
  return best == nullptr ? 1 : 0;
}

}  // namespace mylos::app
