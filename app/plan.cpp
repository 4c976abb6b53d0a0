#include "app/options/consistency.hpp"
#include "app/options/options.hpp"
#include "app/options/usage_error.hpp"
#include "app/plan/job_script.hpp"
#include "app/plan/plan_tables.hpp"
#include "app/plan/plan_target.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "core/base/standard_output.hpp"
#include "data/huggingface/bert_shapes.hpp"
#include "data/huggingface/model_names.hpp"
#include "nn/bert/bert_question_answering.hpp"
#include "tasks/question_answering/bert_shape.hpp"
#include "tasks/question_answering/squad_task.hpp"
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

std::vector<std::size_t> lengths_of(const tasks::SquadWindows& windows) {
  std::vector<std::size_t> lengths(windows.count());
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = windows.length(i);
  return lengths;
}

/// Errors: std::runtime_error where a model that is known by its sizes has no directory.
void check_vocabulary(const Arguments& arguments, const data::NamedBert& known) {
  try {
    data::resolve_model(arguments.model);
  } catch (const std::runtime_error&) {
    fail(
        fmt::format("--data {}: {} is known by its sizes, and cutting questions needs a directory with its vocabulary; "
                    "get it with: mylos fetch {}; or leave out --data",
                    arguments.data.string(), known.name, known.fetched));
  }
}

/// A model that is known by its sizes needs no files, unless questions are to be cut by its vocabulary. Its name
/// becomes the one that train and fetch know it by.
data::NamedBert read_sizes(Arguments& arguments) {
  tasks::SquadConfig& squad = arguments.run.squad;
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(arguments.model, ignored);
  const data::NamedBert* const known = is_directory ? nullptr : data::find_bert_shape(arguments.model);
  if (known != nullptr) arguments.model = known->fetched;
  if (known != nullptr && !arguments.data.empty()) check_vocabulary(arguments, *known);
  if (known == nullptr || !arguments.data.empty()) {
    resolve_model_argument(arguments);
    return {arguments.model, data::read_bert_config(squad.model / "config.json")};
  }
  const std::size_t positions = known->config.max_position_embeddings;
  ensure(squad.max_length <= positions,
         fmt::format("--max-length {}: {} has {} positions", squad.max_length, known->name, positions));
  return *known;
}

PlannedModel read_model(Arguments& arguments) {
  const data::NamedBert sizes = read_sizes(arguments);
  PlannedModel model{.name = sizes.name, .config = sizes.config};
  tasks::SquadConfig& squad = arguments.run.squad;
  if (arguments.data.empty()) {
    model.lengths.assign(squad_windows, squad.max_length);
    model.data = fmt::format(
        "{} windows of {} tokens, as many as SQuAD v1.1 has, each counted full; with --data FILE those that it has",
        count_text(squad_windows), squad.max_length);
    return model;
  }
  squad.train = arguments.data;
  const tasks::SquadTask task(squad, arguments.run.engine.precision, arguments.run.engine.seed,
                              [](const std::string& line) { log_line(line); });
  model.lengths = lengths_of(*task.train_windows());
  model.data = fmt::format("{}: {}", arguments.data.string(), count_of(model.lengths.size(), "window"));
  return model;
}

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
  shown.insert(told.given.begin(), told.given.end());
  shown.erase(engine.steps > 0 ? "epochs" : "steps");
  shown.insert(engine.steps > 0 ? "steps" : "epochs");
  std::vector<PlannedOption> options;
  for (const Option& option : option_table()) {
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
std::string launched_line(const Arguments& arguments, const train::ModePlan& plan) {
  const PlanArguments& target = arguments.plan;
  const std::size_t of_node = target.gpus / target.nodes;
  const std::string gpus = target.gpu == "cpu" ? "" : fmt::format(" --gpus-per-node={}", of_node);
  std::string line = fmt::format("srun --mpi=pmix --nodes={} --ntasks-per-node={} --cpus-per-task={}{} mylos train",
                                 target.nodes, of_node, planned_threads(arguments), gpus);
  line += arguments.data.empty() ? " --dataset squad --do-train" : " --train " + shell_word(told_data(arguments));
  line += " --output run";
  for (const PlannedOption& option : planned_options(arguments, plan)) line += typed_words(option);
  return line;
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
  print_indented_json(result);
}

void print_text(const Arguments& arguments, const PlannedModel& model, const train::PlanTarget& target,
                const train::Workload& workload, const std::vector<train::ModePlan>& plans) {
  const train::Machine& machine = target.machine;
  print(named_line("model", fmt::format("{}: {}, {}", model.name, count_of(workload.model.table().size(), "parameter"),
                                        to_string(arguments.run.engine.precision))));
  print(named_line("data", model.data));
  print(named_line(
      "machine",
      fmt::format("{} x {} on {}, {} each, of which {} are kept free; {:.3g} GB/s between nodes, {:.3g} inside",
                  target.ranks.ranks, machine.name, count_of(target.ranks.nodes, "node"), bytes_text(machine.memory),
                  bytes_text(machine.reserved), 1e-9 * target.network.bandwidth, 1e-9 * machine.link)));
  print(named_line("rate", target.rate.origin) + "\n");
  print_tables(plans);
  for (const train::ModePlan& plan : plans) {
    if (!plan.fits) print(fmt::format("\n{}: {}\n", to_string(plan.mode), plan.obstacle));
  }
  if (const train::ModePlan* best = recommended(plans)) {
    print("\n" + named_line("run", launched_line(arguments, *best)));
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
  const PlannedModel model = read_model(arguments);
  const auto network =
      nn::make_bert_question_answering(tasks::bert_shape(model.config), arguments.run.engine.precision);
  const train::PlanTarget target = make_target(arguments, *network);
  const train::LengthStream samples(model.lengths, arguments.run.squad.batch, arguments.run.engine.seed);
  const train::Workload workload(*network, samples);
  const std::vector<train::ModePlan> plans = plan_modes(arguments, workload, target);
  const train::ModePlan* best = recommended(plans);
  if (!arguments.plan.job.empty()) {
    if (best == nullptr) fail(plans.front().obstacle);
    print_job(arguments, *best);
  } else if (arguments.json) {
    print_json(arguments, model, target, plans);
  } else {
    print_text(arguments, model, target, workload, plans);
  }
  return best == nullptr ? 1 : 0;
}

}  // namespace mylos::app
