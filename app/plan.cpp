#include "app/calibration.hpp"
#include "app/commands.hpp"
#include "app/compute.hpp"
#include "app/consistency.hpp"
#include "app/job_script.hpp"
#include "app/model_argument.hpp"
#include "app/model_shapes.hpp"
#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "core/error.hpp"
#include "nn/bert_question_answering.hpp"
#include "train/bert_shape.hpp"
#include "train/length_task.hpp"
#include "train/memory.hpp"
#include "train/quantities.hpp"
#include "train/run_plan.hpp"
#include "train/squad_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

/// mylos plan: what fits and how long it takes. Starts neither Kokkos nor MPI.
namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;
using parallel::ModeKind;

/// Windows of SQuAD v1.1's training questions, cut by BERT's uncased vocabulary at 384 tokens with 128 shared: what a
/// plan without data counts, each of them full.
constexpr std::size_t squad_windows = 88'524;

/// What is trained, as far as a plan knows it.
struct PlannedModel {
  std::string name;
  data::BertConfig config;
  std::vector<std::size_t> lengths;  ///< of the training windows
  std::string data;                  ///< what they are of
};

std::vector<std::size_t> lengths_of(const train::SquadWindows& windows) {
  std::vector<std::size_t> lengths(windows.count());
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = windows.length(i);
  return lengths;
}

PlannedModel read_model(Arguments& arguments) {
  train::SquadConfig& squad = arguments.run.squad;
  const bool named = find_model_shape(arguments.model) != nullptr && arguments.data.empty();
  if (named) {
    const NamedModel& model = *find_model_shape(arguments.model);
    ensure(squad.max_length <= model.config.max_position_embeddings,
           fmt::format("--max-length {}: {} has {} positions", squad.max_length, model.name,
                       model.config.max_position_embeddings));
    return {model.name, model.config, std::vector<std::size_t>(squad_windows, squad.max_length),
            fmt::format("{} windows of {} tokens, as many as SQuAD v1.1 has, each counted full; with --data FILE those "
                        "that it has",
                        train::count_text(squad_windows), squad.max_length)};
  }
  resolve_model_argument(arguments);
  const data::BertConfig config = data::read_bert_config(squad.model / "config.json");
  if (arguments.data.empty()) {
    return {arguments.model, config, std::vector<std::size_t>(squad_windows, squad.max_length),
            fmt::format("{} windows of {} tokens, as many as SQuAD v1.1 has, each counted full",
                        train::count_text(squad_windows), squad.max_length)};
  }
  squad.train = arguments.data;
  const train::SquadTask task(squad, arguments.run.engine.precision, arguments.run.engine.seed,
                              [](const std::string& line) { log_line(line); });
  return {arguments.model, config, lengths_of(*task.train_windows()),
          fmt::format("{}: {}", arguments.data.string(), train::count_of(task.train_windows()->count(), "window"))};
}

/// Whether a device of this name is of that kind: "NVIDIA A100-SXM4-80GB" is of a100-80.
bool is_of_kind(std::string device, const std::string& kind) {
  std::ranges::transform(device, device.begin(), [](unsigned char letter) { return std::tolower(letter); });
  for (std::size_t begin = 0; begin <= kind.size();) {
    const std::size_t end = std::min(kind.find('-', begin), kind.size());
    if (device.find(kind.substr(begin, end - begin)) == std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

std::size_t planned_threads(const Arguments& arguments) { return arguments.plan.threads.value_or(default_threads()); }

/// Of the measurements that fit the machine and precision the one of the model nearest in size.
std::optional<train::ComputeRate> measured_rate(const Arguments& arguments, const data::BertConfig& model) {
  const PlanArguments& plan = arguments.plan;
  std::vector<Calibration> all;
  if (plan.results.empty()) all = saved_calibrations();
  for (const std::filesystem::path& file : plan.results) all.push_back(read_calibration(file));
  const bool host = plan.gpu == "cpu";
  const std::string cpu = host && plan.results.empty() ? train::processor_name() : "";
  const Calibration* best = nullptr;
  const auto distance = [&](const Calibration& one) {
    const auto ratio = [](std::size_t a, std::size_t b) {
      return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
    };
    return ratio(one.hidden, model.hidden_size) + ratio(one.layers, model.num_hidden_layers);
  };
  for (const Calibration& one : all) {
    const bool there = host
                           ? one.host && one.threads == planned_threads(arguments) && (cpu.empty() || one.device == cpu)
                           : !one.host && is_of_kind(one.device, plan.gpu);
    if (!there || one.precision != arguments.run.engine.precision) continue;
    if (best == nullptr || distance(one) < distance(*best)) best = &one;
  }
  if (best == nullptr) {
    if (plan.results.empty()) return {};
    fail(fmt::format("--bench {}: it is not of --gpu {} in {}{}", plan.results.front().string(), plan.gpu,
                     to_string(arguments.run.engine.precision),
                     host ? fmt::format(" with {} threads", planned_threads(arguments)) : ""));
  }
  return train::ComputeRate{best->flops, best->bandwidth,
                            fmt::format("measured by bench step with {} layers of {}: {:.4g} TFLOP/s", best->layers,
                                        best->hidden, 1e-12 * best->flops)};
}

/// A rank on CPUs like the ones here.
train::Machine host_machine(const Arguments& arguments, std::size_t ranks_of_node) {
  constexpr double thread_flops = 50e9, node_bandwidth = 20e9;
  const auto threads = static_cast<double>(planned_threads(arguments));
  train::Machine machine{.name = "cpu", .host = true};
  machine.memory = (train::available_memory() + train::resident_memory()) / ranks_of_node;
  machine.float32 = machine.bfloat16 = machine.half = threads * thread_flops;
  machine.bandwidth = node_bandwidth / static_cast<double>(ranks_of_node);
  machine.link = 3e9;
  return machine;
}

train::PlanTarget make_target(const Arguments& arguments, const data::BertConfig& model) {
  constexpr double giga = 1e9, gib = 1u << 30;
  const PlanArguments& plan = arguments.plan;
  if (plan.gpu.empty()) throw UsageError("plan needs --gpu; see mylos plan --help");
  if (plan.gpus % plan.nodes != 0) {
    throw UsageError(fmt::format("--gpus {}: not the same number on each of {} nodes; --gpus counts those of all nodes",
                                 plan.gpus, plan.nodes));
  }
  const bool host = plan.gpu == "cpu";
  const std::size_t of_node = plan.gpus / plan.nodes;
  train::PlanTarget target;
  target.machine = host ? host_machine(arguments, of_node) : *train::find_gpu_kind(plan.gpu);
  if (plan.memory) target.machine.memory = static_cast<std::size_t>(*plan.memory * gib);
  if (plan.link) target.machine.link = *plan.link * giga;
  target.rate =
      measured_rate(arguments, model).value_or(train::assumed_rate(target.machine, arguments.run.engine.precision));
  if (host && target.rate.origin.starts_with("assumed")) {
    target.rate.origin = "assumed: 35 GFLOP/s a thread; `mylos bench step` measures it";
  }
  target.network.bandwidth = plan.network * giga;
  target.storage = plan.storage * giga;
  target.ranks = {.ranks = plan.gpus, .nodes = plan.nodes, .of_node = of_node, .on_host = host};
  target.threads = planned_threads(arguments);
  // What Kokkos, MPI and the libraries of matrix products take once they run comes on top of this process.
  constexpr std::size_t libraries = std::size_t{12} << 20;
  target.program = host ? train::resident_memory() + libraries : 0;
  return target;
}

std::vector<train::ModePlan> plan_modes(const Arguments& arguments, const train::Task& task,
                                        const train::PlanTarget& target) {
  std::vector<ModeKind> modes = train::possible_modes(target.ranks);
  if (arguments.run.engine.parallel.mode && !arguments.every_mode) modes = {*arguments.run.engine.parallel.mode};
  std::vector<train::ModePlan> plans;
  for (const ModeKind mode : modes) {
    train::TrainConfig config = arguments.run.engine;
    config.parallel.mode = mode;
    if (mode != ModeKind::hybrid && modes.size() > 1) config.parallel.shard_size = 0;
    plans.push_back(train::plan_run(task, config, target));
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

/// "mylos train ..." of what was planned.
std::string train_command_line(const Arguments& arguments, const train::ModePlan& plan) {
  const train::TrainConfig& engine = arguments.run.engine;
  const std::string file =
      arguments.data.empty() ? "train.json" : std::filesystem::absolute(arguments.data).lexically_normal().string();
  std::string line =
      fmt::format("mylos train --model {} --train {} --output run --mode {} --precision {} --batch {}", arguments.model,
                  file, parallel::to_string(plan.mode), to_string(engine.precision), arguments.run.squad.batch);
  line += fmt::format(" --micro-batch {}", plan.memory.largest.samples);
  line += engine.steps > 0 ? fmt::format(" --steps {}", engine.steps) : fmt::format(" --epochs {}", engine.epochs);
  line += fmt::format(" --max-length {}", arguments.run.squad.max_length);
  if (engine.recompute != nn::Recompute::none) line += fmt::format(" --recompute {}", nn::to_string(engine.recompute));
  if (engine.parallel.bfloat16_gradients) line += " --communication-precision bfloat16";
  if (arguments.plan.gpu != "cpu" && arguments.plan.gpus > 1) line += " --communicator nccl";
  if (engine.parallel.shard_size > 0) line += fmt::format(" --shard-size {}", engine.parallel.shard_size);
  return line;
}

std::string launched_line(const Arguments& arguments, const train::ModePlan& plan) {
  const PlanArguments& target = arguments.plan;
  const std::string gpus = target.gpu == "cpu" ? "" : " --gpus-per-task=1";
  return fmt::format("srun --nodes={} --ntasks={}{} {}", target.nodes, target.gpus, gpus,
                     train_command_line(arguments, plan));
}

/// A third more than predicted and ten minutes, in steps of ten minutes.
double walltime_of(const train::ModePlan& plan) {
  constexpr double margin = 1.3, least = 600.0, step = 600.0;
  return std::ceil((margin * plan.job() + least) / step) * step;
}

Json json_of(const train::ModePlan& plan) {
  const train::MemoryPlan& memory = plan.memory;
  Json efficiency;
  for (const auto& [count, share] : plan.efficiency) efficiency[std::to_string(count)] = share;
  return {{"mode", parallel::to_string(plan.mode)},
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
            {"operands", memory.workspace + memory.scratch}}},
          {"micro_batch", memory.largest.samples},
          {"largest_micro_batch", plan.largest},
          {"step_seconds", plan.step.total()},
          {"compute_seconds", plan.step.compute},
          {"optimizer_seconds", plan.step.optimizer},
          {"exchange_seconds", plan.step.exchange},
          {"exposed_seconds", plan.step.exposed},
          {"tokens_per_second", plan.tokens / plan.step.total()},
          {"training_seconds", plan.training},
          {"checkpoint_seconds", plan.checkpoints},
          {"job_seconds", plan.job()},
          {"efficiency", efficiency}};
}

void print_json(const Arguments& arguments, const PlannedModel& model, const train::PlanTarget& target,
                const std::vector<train::ModePlan>& plans) {
  const train::ModePlan* best = recommended(plans);
  Json modes = Json::array();
  for (const train::ModePlan& plan : plans) modes.push_back(json_of(plan));
  const Json result = {{"model", model.name},
                       {"data", model.data},
                       {"gpu", target.machine.name},
                       {"gpus", target.ranks.ranks},
                       {"nodes", target.ranks.nodes},
                       {"memory", target.machine.memory},
                       {"precision", to_string(arguments.run.engine.precision)},
                       {"batch", arguments.run.squad.batch},
                       {"rate", target.rate.origin},
                       {"modes", modes},
                       {"recommended", best == nullptr ? Json(nullptr) : Json(launched_line(arguments, *best))}};
  print(result.dump(2) + "\n");
}

void print_text(const Arguments& arguments, const PlannedModel& model, const train::PlanTarget& target,
                const train::Task& task, const std::vector<train::ModePlan>& plans) {
  const auto size = [](std::size_t bytes) { return train::bytes_text(bytes); };
  print(fmt::format("model    {}: {}, {}\n", model.name, train::count_of(task.model().table().size(), "parameter"),
                    to_string(arguments.run.engine.precision)));
  print(fmt::format("data     {}\n", model.data));
  print(fmt::format(
      "machine  {} x {} on {}, {} each, of which {} are kept free; {:.3g} GB/s between nodes, {:.3g} inside\n",
      target.ranks.ranks, target.machine.name, train::count_of(target.ranks.nodes, "node"), size(target.machine.memory),
      size(target.machine.reserved), 1e-9 * target.network.bandwidth, 1e-9 * target.machine.link));
  print(fmt::format("rate     {}\n\n", target.rate.origin));
  print(fmt::format("{:18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}\n", "memory of a rank", "all",
                    "program", "values", "gradients", "optimizer", "activations", "operands", "exchange"));
  for (const train::ModePlan& plan : plans) {
    const train::MemoryPlan& memory = plan.memory;
    print(fmt::format("{:18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}\n", parallel::to_string(plan.mode),
                      size(memory.peak()), size(memory.program), size(memory.values), size(memory.gradients),
                      size(memory.optimizer), size(memory.activations), size(memory.workspace + memory.scratch),
                      size(memory.exchange)));
  }
  print(fmt::format("\n{:18} {:>6} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}\n", "time", "fits", "at once",
                    "at most", "step ms", "compute", "optimizer", "exposed", "tokens/s", "job"));
  for (const train::ModePlan& plan : plans) {
    print(fmt::format("{:18} {:>6} {:>8} {:>8} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>12}\n",
                      parallel::to_string(plan.mode), plan.fits ? "yes" : "no", plan.memory.largest.samples,
                      plan.largest, 1e3 * plan.step.total(), 1e3 * plan.step.compute, 1e3 * plan.step.optimizer,
                      1e3 * plan.step.exposed, plan.tokens / plan.step.total(), train::duration_text(plan.job())));
  }
  print("\nefficiency, with as much of a step on each\n");
  std::string head = fmt::format("{:18}", "GPUs");
  for (const auto& [count, share] : plans.front().efficiency) head += fmt::format(" {:>5}", count);
  print(head + "\n");
  for (const train::ModePlan& plan : plans) {
    std::string line = fmt::format("{:18}", parallel::to_string(plan.mode));
    for (const auto& [count, share] : plan.efficiency) line += fmt::format(" {:>4.0f}%", 100.0 * share);
    print(line + "\n");
  }
  for (const train::ModePlan& plan : plans) {
    if (!plan.fits) print(fmt::format("\n{}: {}\n", parallel::to_string(plan.mode), plan.obstacle));
  }
  if (const train::ModePlan* best = recommended(plans)) {
    print(fmt::format("\nrun      {}\n", launched_line(arguments, *best)));
  }
}

void print_job(const Arguments& arguments, const train::ModePlan& plan) {
  const PlanArguments& target = arguments.plan;
  print(job_script(target.job, {.nodes = target.nodes,
                                .ranks_per_node = target.gpus / target.nodes,
                                .threads = planned_threads(arguments),
                                .gpus = target.gpu != "cpu",
                                .walltime = walltime_of(plan),
                                .command = train_command_line(arguments, plan)}));
}

}  // namespace

int run_plan(const Arguments& told) {
  Arguments arguments = told;
  if (arguments.model.empty()) throw UsageError("plan needs --model; see mylos plan --help");
  if (!arguments.plan.job.empty() && arguments.json) {
    throw UsageError("--job and --json exclude each other; give one of them");
  }
  settle_batch(arguments, arguments.plan.gpus);
  const PlannedModel model = read_model(arguments);
  const train::PlanTarget target = make_target(arguments, model.config);
  const auto network =
      nn::make_bert_question_answering(train::bert_shape(model.config), arguments.run.engine.precision);
  const train::LengthTask task(*network, model.lengths, arguments.run.squad.batch, arguments.run.engine.seed);
  const std::vector<train::ModePlan> plans = plan_modes(arguments, task, target);
  const train::ModePlan* best = recommended(plans);
  if (!arguments.plan.job.empty()) {
    if (best == nullptr) fail(plans.front().obstacle);
    print_job(arguments, *best);
  } else if (arguments.json) {
    print_json(arguments, model, target, plans);
  } else {
    print_text(arguments, model, target, task, plans);
  }
  return best == nullptr ? 1 : 0;
}

}  // namespace mylos::app
