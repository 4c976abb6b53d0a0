#include "app/options/consistency.hpp"
#include "app/options/plan_options.hpp"
#include "app/plan/job_script.hpp"
#include "app/plan/plan_tables.hpp"
#include "app/plan/plan_target.hpp"
#include "app/plan/train_line.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "train/monitor/run_banner.hpp"
#include "train/planning/run_plan.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

/// mylos plan: predicts whether a run fits in memory and how long it takes. Does not start Kokkos or MPI.
namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;
using parallel::StrategyKind;

std::vector<train::StrategyPlan> plan_strategies(const Arguments& arguments, const train::Workload& workload,
                                                 const train::PlanTarget& target) {
  std::vector<StrategyKind> strategies = train::possible_strategies(target.ranks);
  if (arguments.run.engine.parallel.strategy && !arguments.plan->every_strategy)
    strategies = {*arguments.run.engine.parallel.strategy};
  std::vector<train::StrategyPlan> plans;
  for (const StrategyKind strategy : strategies) {
    train::TrainConfig config = arguments.run.engine;
    config.parallel.strategy = strategy;
    if (strategy != StrategyKind::hybrid && strategies.size() > 1) config.parallel.shard_size = 0;
    plans.push_back(train::plan_run(workload, config, target));
  }
  return plans;
}

/// Returns the fastest plan that fits. Among those within 2 % of it, returns the first, which communicates least.
const train::StrategyPlan* recommended(const std::vector<train::StrategyPlan>& plans) {
  constexpr double alike = 1.02;
  double fastest = 0.0;
  for (const train::StrategyPlan& plan : plans) {
    if (plan.fits && (fastest == 0.0 || plan.job() < fastest)) fastest = plan.job();
  }
  const auto found = std::ranges::find_if(
      plans, [&](const train::StrategyPlan& plan) { return plan.fits && plan.job() <= alike * fastest; });
  return found == plans.end() ? nullptr : &*found;
}

/// Returns the options of train for the planned run: those given to plan that train has, and those that the plan sets.
std::vector<TrainOption> planned_options(const Arguments& configured, const train::StrategyPlan& plan,
                                         const train::WorkKind& work) {
  Arguments arguments = configured;
  train::TrainConfig& engine = arguments.run.engine;
  engine.parallel.strategy = plan.strategy;
  if (plan.strategy != StrategyKind::hybrid) engine.parallel.shard_size = 0;
  if (engine.micro_tokens == 0 && engine.accumulation == 0) engine.micro_batch = work.batch_size(plan.memory.largest);
  std::set<std::string, std::less<>> shown = configured.sources.given;
  shown.erase(engine.steps > 0 ? "epochs" : "steps");
  shown.insert(engine.steps > 0 ? "steps" : "epochs");
  return train_options(arguments, shown);
}

std::string run_line(const Arguments& arguments, const tasks::PlannedRun& run, const train::StrategyPlan& plan) {
  return launched_line(arguments, run.data_options, planned_options(arguments, plan, run.work));
}

/// Returns 1.3 times the predicted time plus ten minutes, rounded up to ten minutes.
double walltime_of(const train::StrategyPlan& plan) {
  constexpr double margin = 1.3, least = 600.0, step = 600.0;
  return std::ceil((margin * plan.job() + least) / step) * step;
}

/// Returns {"none": 24, "attention": 28, "layer": 200}.
OrderedJson largest_json(const train::StrategyPlan& plan) {
  OrderedJson largest = OrderedJson::object();
  for (const auto& [recompute, samples] : plan.largest_of_each) {
    largest[std::string(nn::to_string(recompute))] = samples;
  }
  return largest;
}

OrderedJson json_of(const train::StrategyPlan& plan, const train::WorkKind& work) {
  const train::MemoryPlan& memory = plan.memory;
  OrderedJson efficiency;
  for (const auto& [count, share] : plan.efficiency) efficiency[std::to_string(count)] = share;
  return {{"mode", to_string(plan.strategy)},
          {"fits", plan.fits},
          {"obstacle", plan.fits ? OrderedJson(nullptr) : OrderedJson(plan.obstacle)},
          {"memory",
           {{"peak", memory.peak()},
            {"program", memory.program},
            {"values", memory.values},
            {"gradients", memory.gradients},
            {"exchange", memory.exchange},
            {"optimizer", memory.optimizer},
            {"activations", memory.activations},
            {"workspace", memory.workspace + memory.scratch},
            {"output", memory.output}}},
          {"host_images", plan.host_staging},
          {"micro_batch", work.batch_size(memory.largest)},
          {"asked_micro_batch", memory.asked},
          {"largest_micro_batch", plan.largest},
          {"largest_micro_batches", largest_json(plan)},
          {"kept_bytes_per_flop", plan.kept_per_flop},
          {"step_seconds", plan.step.total()},
          {"compute_seconds", plan.step.compute},
          {"optimizer_seconds", plan.step.optimizer},
          {"exchange_seconds", plan.step.exchange},
          {"exposed_seconds", plan.step.exposed},
          {"sent_bytes", plan.step.sent},
          {"node_sent_bytes", plan.step.node_sent},
          {train::rate_key(work.name), work.count(plan.tokens) / plan.step.total()},
          {"busy", plan.busy()},
          {"efficient_batch", plan.efficient_batch},
          {"training_seconds", plan.training},
          {"checkpoint_seconds", plan.checkpoints},
          {"job_seconds", plan.job()},
          {"efficiency", efficiency}};
}

void print_json(const Arguments& arguments, const tasks::PlannedRun& run, const train::PlanTarget& target,
                const std::vector<train::StrategyPlan>& plans) {
  const train::StrategyPlan* best = recommended(plans);
  OrderedJson strategies = OrderedJson::array();
  for (const train::StrategyPlan& plan : plans) strategies.push_back(json_of(plan, run.work));
  const OrderedJson result = {
      {"model", run.name},
      {"data", run.data},
      {"gpu", target.machine.name},
      {"compared", target.machine.is_compared},
      {"gpus", target.ranks.ranks},
      {"nodes", target.ranks.nodes},
      {"memory", target.machine.memory},
      {"precision", to_string(arguments.run.engine.precision)},
      {"batch", arguments.run.task.batch},
      {"rate", target.rate.origin},
      {"flops_per_second", target.rate.flops},
      {"bytes_per_second", target.rate.bandwidth},
      {"modes", strategies},
      {"recommended", best == nullptr ? OrderedJson(nullptr) : OrderedJson(run_line(arguments, run, *best))}};
  print_indented_json(result);
}

void print_text(const Arguments& arguments, const tasks::PlannedRun& run, const train::PlanTarget& target,
                const train::Workload& workload, const std::vector<train::StrategyPlan>& plans) {
  const train::Machine& machine = target.machine;
  const std::size_t reserved = machine.reserved + train::connections_of(target, plans.front().strategy);
  const ParameterTable& table = workload.model.table();
  print(
      named_line("model", fmt::format("{}: {}, {}", run.name, train::parameters_text(table.size(), table.frozen_size()),
                                      to_string(arguments.run.engine.precision))));
  print(named_line("data", run.data));
  print(named_line(
      "machine",
      fmt::format(
          "{} x {} on {}, {} of memory each, {} of it reserved; {:.3g} GB/s between nodes, {:.3g} GB/s inside{}",
          target.ranks.ranks, machine.name, count_of(target.ranks.nodes, "node"), bytes_text(machine.memory),
          bytes_text(reserved), 1e-9 * target.network.bandwidth, 1e-9 * machine.link,
          machine.is_compared ? "" : "; from its data sheet, never compared with a measurement")));
  print(named_line("rate", target.rate.origin) + "\n");
  print_tables(plans, run.work, target.ranks.ranks);
  for (const train::StrategyPlan& plan : plans) {
    if (!plan.fits) print(fmt::format("\n{}: {}\n", to_string(plan.strategy), plan.obstacle));
  }
  if (const train::StrategyPlan* best = recommended(plans); best != nullptr) {
    const std::string note = batch_note(*best, run.work, target.ranks);
    if (!note.empty()) print("\n" + named_line("batch", note));
    print("\n" + named_line("run", run_line(arguments, run, *best)));
  }
}

void print_job(const Arguments& arguments, const train::StrategyPlan& plan, const train::WorkKind& work) {
  const PlanArguments& target = *arguments.plan;
  Job job{.nodes = target.nodes,
          .ranks_per_node = target.gpus / target.nodes,
          .threads = planned_threads(arguments),
          .gpus = target.gpu != "cpu",
          .walltime = walltime_of(plan),
          .train = data_path(arguments)};
  // Options for which the script has a variable; the others go to its OPTIONS.
  const std::map<std::string, std::string*> variables = {{"model", &job.model},
                                                         {"mode", &job.strategy},
                                                         {"precision", &job.precision},
                                                         {"checkpoint-every", &job.checkpoints}};
  for (const TrainOption& option : planned_options(arguments, plan, work)) {
    const auto variable = variables.find(option.first);
    if (variable != variables.end()) *variable->second = option.second;
    if (variable == variables.end()) job.options += typed_words(option).substr(job.options.empty() ? 1 : 0);
  }
  print(job_script(target.job, job));
}

}  // namespace

int run_plan(const Arguments& configured) {
  Arguments arguments = configured;
  if (arguments.model.empty()) throw UsageError("plan needs --model; see mylos plan --help");
  if (!arguments.plan->job.empty() && arguments.json) {
    throw UsageError("--job and --json exclude each other; give one of them");
  }
  resolve_batch(arguments, arguments.plan->gpus);
  const tasks::PlannedRun run = planned_run(arguments);
  arguments.model = run.model;
  arguments.run = run.config;
  const train::PlanTarget target = make_target(arguments, *run.network);
  const std::string remark = precision_remark(arguments.run.engine.precision, present_cpu_feature_names());
  if (target.ranks.on_host && !remark.empty()) log_line(remark);
  const std::shared_ptr<const train::SampleStream> samples = tasks::planned_samples(run);
  const train::Workload workload(*run.network, *samples);
  const std::vector<train::StrategyPlan> plans = plan_strategies(arguments, workload, target);
  const train::StrategyPlan* best = recommended(plans);
  if (!arguments.plan->job.empty()) {
    if (best == nullptr) fail(plans.front().obstacle);
    print_job(arguments, *best, run.work);
  } else if (arguments.json) {
    print_json(arguments, run, target, plans);
  } else {
    print_text(arguments, run, target, workload, plans);
  }
  return best == nullptr ? 1 : 0;
}

}  // namespace mylos::app
