#include "app/options/consistency.hpp"

#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/gemm.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/communicator/nccl_communicator.hpp"
#include "parallel/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace mylos::app {
namespace {

bool was_given(const Arguments& arguments, const char* name) { return arguments.sources.was_given(name); }

bool was_configured(const Arguments& arguments, const char* name) { return arguments.sources.was_configured(name); }

void exclude(const Arguments& arguments, const char* one, const char* other) { arguments.sources.exclude(one, other); }

bool is_overridden(const Arguments& arguments, const char* name, const char* other) {
  return arguments.sources.is_overridden(name, other);
}

/// Options that split a rank's part of a step into micro-batches.
constexpr std::array cuts = {"gradient-accumulation-steps", "micro-batch", "micro-tokens"};

std::size_t& cut_of(train::TrainConfig& engine, std::string_view name) {
  if (name == "micro-batch") return engine.micro_batch;
  return name == "micro-tokens" ? engine.micro_tokens : engine.accumulation;
}

/// Resolves precedence between the command line and a configuration: the setting on the command line wins.
void drop_what_was_overridden(Arguments& arguments) {
  if (was_given(arguments, "epochs") && !was_given(arguments, "steps")) arguments.run.engine.steps = 0;
  if (was_given(arguments, "warmup") && !was_given(arguments, "warmup-steps")) {
    arguments.run.engine.warmup_steps.reset();
  }
  train::TrainConfig& engine = arguments.run.engine;
  for (const char* given : cuts) {
    if (!was_given(arguments, given)) continue;
    for (const char* other : cuts) {
      if (!was_given(arguments, other)) cut_of(engine, other) = 0;
    }
  }
  for (const char* given : {"model",
                            "train",
                            "dataset",
                            "max-length",
                            "batch",
                            "batch-per-rank",
                            "batch-size-per-device",
                            "micro-batch",
                            "micro-tokens",
                            "gradient-accumulation-steps",
                            "mode",
                            "no-fsdp",
                            "shard-size",
                            "precision",
                            "bf16",
                            "fp16",
                            "recompute",
                            "batch-norm-group",
                            "image-size",
                            "labels",
                            "stem",
                            "use-fsdp",
                            "use-amp"}) {
    if (was_given(arguments, given)) arguments.run.engine.recorded_layout.reset();
  }
  if (was_given(arguments, "gemm") || was_given(arguments, "tf32")) arguments.run.engine.gemm.recorded.reset();
  if (was_given(arguments, "attention")) arguments.run.task.recorded_attention.reset();
}

/// A setting that applies only to one choice of another option.
struct SettingOfChoice {
  const char* name;
  const char* chooser;
  const char* choice;
};
constexpr std::array settings_of_choices = {
    SettingOfChoice{"adam-beta1", "optimizer", "adamw"},   SettingOfChoice{"adam-beta2", "optimizer", "adamw"},
    SettingOfChoice{"adam-epsilon", "optimizer", "adamw"}, SettingOfChoice{"momentum", "optimizer", "sgd"},
    SettingOfChoice{"nesterov", "optimizer", "sgd"},       SettingOfChoice{"decay-steps", "schedule", "step"},
    SettingOfChoice{"decay-factor", "schedule", "step"}};

/// Resets settings of an optimizer or schedule that a configuration chose and the command line replaced. Such settings
/// on the command line itself are refused later.
void drop_settings_of_replaced_choices(const Command& command, Arguments& arguments) {
  train::TrainConfig& engine = arguments.run.engine;
  const train::TrainConfig defaults = default_arguments(command, *arguments.task).run.engine;
  const bool is_adamw = engine.optimizer.kind == train::OptimizerKind::adamw;
  if (was_given(arguments, "optimizer") && is_adamw) {
    engine.optimizer.sgd.momentum = defaults.optimizer.sgd.momentum;
    engine.optimizer.sgd.nesterov = defaults.optimizer.sgd.nesterov;
  }
  if (was_given(arguments, "optimizer") && !is_adamw) {
    engine.optimizer.adamw.beta1 = defaults.optimizer.adamw.beta1;
    engine.optimizer.adamw.beta2 = defaults.optimizer.adamw.beta2;
    engine.optimizer.adamw.epsilon = defaults.optimizer.adamw.epsilon;
  }
  if (was_given(arguments, "schedule") && engine.schedule != nn::ScheduleKind::step) {
    engine.decay_steps.clear();
    engine.decay_factor = defaults.decay_factor;
  }
}

/// Refuses settings of an optimizer or schedule that is not chosen. Allows their defaults, which a run.json contains.
void check_settings_of_choices(const Command& command, const Arguments& arguments) {
  const Arguments defaults = default_arguments(command, *arguments.task);
  for (const auto& [name, chooser, choice] : settings_of_choices) {
    const std::string chosen = find_option(chooser, *arguments.task)->print(arguments).get<std::string>();
    if (chosen == choice) continue;
    if (was_given(arguments, name)) {
      throw UsageError(fmt::format("--{} needs --{} {}, but the {} is {}; leave it out, or give --{} {}", name, chooser,
                                   choice, chooser, chosen, chooser, choice));
    }
    const Option& option = *find_option(name, *arguments.task);
    if (option.print(arguments) == option.print(defaults)) continue;
    throw UsageError(fmt::format("{} needs {} {}, but the {} is {}; leave it out of the configuration", name, chooser,
                                 choice, chooser, chosen));
  }
}

/// Removes the momentum for Trainer's `--optim sgd`, which is SGD without momentum.
void take_peers_sgd(Arguments& arguments) {
  const bool is_peers_name = std::ranges::any_of(arguments.typed, [](const TypedOption& option) {
    return option.name == "optimizer" && option.words.front().starts_with("--optim") &&
           !option.words.front().starts_with("--optimizer");
  });
  if (!is_peers_name || arguments.run.engine.optimizer.kind != train::OptimizerKind::sgd) return;
  if (was_given(arguments, "momentum")) return;
  arguments.run.engine.optimizer.sgd.momentum = 0.0;
  arguments.remarks.push_back("--optim sgd: SGD without momentum, as Trainer's; --momentum X gives it one");
}

/// Refuses contradictory settings of the optimizer and its learning rate.
void check_optimizer(const Command& command, Arguments& arguments) {
  drop_settings_of_replaced_choices(command, arguments);
  check_settings_of_choices(command, arguments);
  take_peers_sgd(arguments);
  const train::TrainConfig& engine = arguments.run.engine;
  if (engine.optimizer.sgd.nesterov && engine.optimizer.sgd.momentum == 0.0) {
    throw UsageError("--nesterov needs a --momentum above 0; give one, or leave out --nesterov");
  }
  if (engine.schedule == nn::ScheduleKind::step && engine.decay_steps.empty()) {
    throw UsageError(
        "--schedule step needs --decay-steps N,N,...: the steps at which the learning rate is multiplied by "
        "--decay-factor");
  }
  if (engine.schedule == nn::ScheduleKind::constant && engine.learning_rate_min > 0.0) {
    throw UsageError("--learning-rate-min does nothing with --schedule constant; leave one of them out");
  }
  if (engine.learning_rate_min > engine.learning_rate) {
    throw UsageError(fmt::format("--learning-rate-min {}: expected at most --learning-rate, {}",
                                 engine.learning_rate_min, engine.learning_rate));
  }
}

void exclude_cuts(Arguments& arguments) {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      exclude(arguments, cuts[i], cuts[j]);
      if (cut_of(arguments.run.engine, cuts[i]) == 0 || cut_of(arguments.run.engine, cuts[j]) == 0) continue;
      throw UsageError(
          fmt::format("{} and {} exclude each other; leave one of them out of the configuration", cuts[i], cuts[j]));
    }
  }
}

/// Applies the option as a batch per rank. Returns the sequences per micro-batch; 0 if the option does not determine
/// it.
std::size_t take_batch_size_per_device(Arguments& arguments) {
  constexpr const char* name = "batch-size-per-device";
  if (!arguments.batch_size_per_device) return 0;
  const auto is_replaced = [&](const char* other) {
    exclude(arguments, name, other);
    return is_overridden(arguments, name, other);
  };
  const bool has_batch = is_replaced("batch") || is_replaced("batch-per-rank");
  const bool has_cut = is_replaced("micro-batch") || is_replaced("micro-tokens");
  if (!has_batch) arguments.batch_per_rank = arguments.batch_size_per_device;
  return has_batch || has_cut ? 0 : *arguments.batch_size_per_device;
}

/// Resolves the batch for one rank: --gradient-accumulation-steps multiplies a batch per rank.
void resolve_batches(Arguments& arguments) {
  exclude(arguments, "batch", "batch-per-rank");
  exclude_cuts(arguments);
  const std::size_t micro_batch = take_batch_size_per_device(arguments);
  if (is_overridden(arguments, "batch-per-rank", "batch")) arguments.batch_per_rank.reset();
  std::size_t& batch = arguments.run.task.batch;
  const std::size_t parts = arguments.run.engine.accumulation;
  arguments.batch_is_per_rank = arguments.batch_per_rank.has_value();
  if (arguments.batch_per_rank) {
    batch = *arguments.batch_per_rank * std::max<std::size_t>(parts, 1);
  } else if (parts > batch) {
    throw UsageError(fmt::format("--gradient-accumulation-steps {}: expected at most the batch, {}", parts, batch));
  }
  arguments.batch_per_rank.reset();
  if (micro_batch == 0) return;
  for (const char* cut : cuts) cut_of(arguments.run.engine, cut) = 0;
  arguments.run.engine.micro_batch = micro_batch;
}

void need(bool given, const Command& command, std::string_view name) {
  if (!given) throw UsageError(fmt::format("{} needs --{}; see mylos {} --help", command.name, name, command.name));
}

/// Refuses options about evaluations if there are none.
void check_evaluation(const Arguments& arguments) {
  if (!arguments.run.task.dev.empty()) return;
  const train::TrainConfig& engine = arguments.run.engine;
  const char* without_use = engine.best_by != "loss"                   ? "best-by"
                            : engine.patience > 0                      ? "patience"
                            : engine.evaluate_every > 0                ? "eval-every"
                            : engine.evaluate_every_epochs > 0         ? "eval-every"
                            : arguments.run.engine.evaluate_on_start   ? "eval-on-start"
                            : arguments.run.task.dev_limit.has_value() ? "dev-limit"
                                                                       : nullptr;
  if (without_use == nullptr) return;
  throw UsageError(fmt::format("--{} needs --dev: without it nothing is evaluated", without_use));
}

/// Checks the options of --deterministic, which determines the micro-batches itself.
void check_deterministic(const Arguments& arguments) {
  const train::TrainConfig& engine = arguments.run.engine;
  if (!engine.parallel.deterministic) {
    if (!was_given(arguments, "leaves")) return;
    throw UsageError("--leaves needs --deterministic");
  }
  if (engine.parallel.bfloat16_gradients) {
    throw UsageError(
        "--deterministic and --communication-precision bfloat16 exclude each other: roundings would depend on ranks "
        "and mode; leave one of them out");
  }
  if (engine.micro_batch == 0 && engine.micro_tokens == 0 && engine.accumulation == 0) return;
  const char* given = arguments.batch_size_per_device ? "batch-size-per-device"
                      : engine.accumulation > 0       ? "gradient-accumulation-steps"
                      : engine.micro_batch > 0        ? "micro-batch"
                                                      : "micro-tokens";
  throw UsageError(
      fmt::format("--deterministic divides every step into {} micro-batch groups (--leaves); leave out --{}",
                  engine.parallel.micro_batch_groups, given));
}

/// Refuses communicators that this build lacks.
void check_communicator(const Arguments& arguments) {
  if (arguments.train.communicator == "nccl" && !parallel::has_nccl()) {
    throw UsageError("--communicator nccl: this build has no NCCL; use auto or mpi");
  }
  if (arguments.train.communicator == "mpi" && !parallel::has_mpi()) {
    throw UsageError("--communicator mpi: this build has no MPI; use auto, or build with -DMYLOS_ENABLE_MPI=ON");
  }
}

/// Refuses options of the transformers scripts for other actions than training.
void check_doings(const Arguments& arguments) {
  const tasks::TaskConfig& task = arguments.run.task;
  const bool is_said = was_given(arguments, "do-train") || was_configured(arguments, "do-train");
  const bool is_denied = is_said && !task.do_train;
  if (is_denied || (task.do_eval && !task.do_train)) {
    throw UsageError(
        "mylos train needs --do_train if --do_train or --do_eval is given: add it, or only evaluate, with mylos eval");
  }
}

void check_evaluated(const Arguments& arguments) {
  if (!arguments.run.task.do_eval || !arguments.run.task.dev.empty()) return;
  throw UsageError("--do-eval needs evaluation data: --dev FILE (--validation_file), or --dataset NAME");
}

/// Resolves Trainer's names for two of the types of --precision.
void resolve_precision(Arguments& arguments) {
  if (arguments.train.bf16 && arguments.train.fp16) {
    exclude(arguments, "bf16", "fp16");
    (was_given(arguments, "bf16") ? arguments.train.fp16 : arguments.train.bf16) = false;
  }
  for (const auto& [name, is_on, precision] : {std::tuple("bf16", arguments.train.bf16, Precision::bfloat16),
                                               std::tuple("fp16", arguments.train.fp16, Precision::float16)}) {
    if (!is_on) continue;
    exclude(arguments, name, "precision");
    if (is_overridden(arguments, name, "precision")) continue;
    arguments.run.engine.precision = precision;
  }
}

/// Resolves another name for one of the choices of --mode, or of --modes in commands that run several.
void resolve_no_fsdp(const Command& command, Arguments& arguments) {
  if (!arguments.no_fsdp) return;
  const bool runs_several = (command.bit & (compare_command | bench_command)) != 0;
  const char* const other = runs_several ? "modes" : "mode";
  exclude(arguments, "no-fsdp", other);
  if (is_overridden(arguments, "no-fsdp", other)) return;
  if (runs_several) {
    arguments.modes = {"replicated"};
    return;
  }
  arguments.run.engine.parallel.mode = parallel::ModeKind::replicated;
  arguments.plan.every_mode = false;
}

/// Resolves Trainer's checkpoint strategy. As in Trainer, save_steps only counts with "steps".
void resolve_save_strategy(Arguments& arguments) {
  const std::string& strategy = arguments.train.save_strategy;
  if (strategy.empty() || is_overridden(arguments, "save-strategy", "checkpoint-every")) return;
  train::CheckpointConfig& checkpoints = arguments.run.engine.checkpoints;
  const auto& beside = was_given(arguments, "save-strategy") ? arguments.sources.given : arguments.sources.configured;
  const bool is_given = beside.contains("checkpoint-every"), is_in_steps = is_given && checkpoints.every_steps > 0;
  if (is_given && !is_in_steps) exclude(arguments, "save-strategy", "checkpoint-every");
  if (strategy == "steps") {
    constexpr std::size_t of_trainer = 500;
    if (checkpoints.every_steps == 0) checkpoints.every_steps = of_trainer;
    return;
  }
  if (is_in_steps) {
    arguments.remarks.push_back(
        fmt::format("--save-steps {} has no effect with --save-strategy {}", checkpoints.every_steps, strategy));
  }
  checkpoints.every_steps = 0;
  checkpoints.every_seconds = 0.0;
  checkpoints.every_epoch = strategy == "epoch";
}

/// Refuses every option about checkpoints except `never` in a build without HDF5, which cannot write any.
void check_checkpoints(const Arguments& arguments) {
  if (parallel::has_checkpoint_files()) return;
  const bool is_regular = arguments.run.engine.checkpoints.regular();
  for (const char* name : {"extend", "checkpoint-every", "save-strategy", "stop-before", "walltime"}) {
    const bool is_interval = std::string_view(name) == "checkpoint-every" || std::string_view(name) == "save-strategy";
    if (!was_given(arguments, name) || (is_interval && !is_regular)) continue;
    throw UsageError(fmt::format("--{} needs checkpoints, and this build has no HDF5; leave it out", name));
  }
}

/// Checks the options of --extend, which continues from the last checkpoint of the run in --output.
void check_extend(const Arguments& arguments) {
  if (!arguments.train.extend) return;
  exclude(arguments, "extend", "overwrite");
  if (arguments.train.resume != "auto") {
    throw UsageError(
        fmt::format("--extend and --resume {} exclude each other: --extend continues from the last checkpoint "
                    "in --output; leave one of them out",
                    arguments.train.resume));
  }
}

void resolve_train(const Command& command, Arguments& arguments) {
  check_evaluated(arguments);
  need(!arguments.model.empty(), command, "model");
  need(!arguments.run.task.train.empty(), command, "train");
  need(!arguments.run.engine.output.empty(), command, "output");
  drop_what_was_overridden(arguments);
  check_optimizer(command, arguments);
  resolve_batches(arguments);
  check_deterministic(arguments);
  check_communicator(arguments);
  check_evaluation(arguments);
  check_extend(arguments);
  resolve_save_strategy(arguments);
  check_checkpoints(arguments);
}

/// Refuses modes of a single run: compare sets modes and numbers of ranks itself.
void resolve_compare(const Arguments& arguments) {
  if (was_given(arguments, "mode")) throw UsageError("compare runs several modes: use --modes A,B instead of --mode");
  if (was_given(arguments, "extend"))
    throw UsageError("compare starts every run from the beginning; leave out --extend");
  if (was_given(arguments, "dry-run")) throw UsageError("compare has no --dry-run; leave it out");
}

void check_loss_scale(const Arguments& arguments) {
  if (!was_given(arguments, "initial-loss-scale") || arguments.run.engine.precision == Precision::float16) return;
  throw UsageError("--initial-loss-scale needs --precision half");
}

void check_tf32(const Arguments& arguments) {
  const train::TrainConfig& engine = arguments.run.engine;
  if (!engine.gemm.tf32) return;
  if (engine.precision != Precision::float32) {
    throw UsageError(
        fmt::format("--tf32 needs --precision float, not {}; leave one of them out", to_string(engine.precision)));
  }
  const std::string provider = tf32_gemm_provider();
  if (provider.empty()) {
    throw UsageError(
        "--tf32 needs a GPU, and this build is for the CPU; leave it out, or build with -DMYLOS_ENABLE_CUDA=ON");
  }
  const std::string& chosen = engine.gemm.provider;
  if (chosen == train::GemmConfig::automatic || provider.starts_with(chosen)) return;
  throw UsageError(
      fmt::format("--tf32 and --gemm {} exclude each other: only {} computes in TF32; leave one of them out", chosen,
                  default_gemm_provider()));
}

/// Checks the options of tokenize: a model's directory defines its whole tokenizer; a vocabulary gives only ids and
/// offsets.
void check_tokenizer(const Command& command, const Arguments& arguments) {
  if (arguments.model.empty()) {
    if (arguments.tokenize.decode) need(false, command, "model");
    if (arguments.tokenize.vocabulary.empty())
      throw UsageError("tokenize needs --model or --vocab; see mylos tokenize --help");
    return;
  }
  if (!arguments.tokenize.vocabulary.empty()) exclude(arguments, "model", "vocab");
  for (const char* name : {"cased", "offsets"}) {
    if (was_given(arguments, name))
      throw UsageError(fmt::format("tokenize: --{} needs --vocab instead of --model", name));
  }
}

/// Returns whether the command only predicts, so that this build need not be able to compute the run.
bool only_plans(const Command& command, const Arguments& arguments) {
  return command.bit == plan_command || (command.bit == bench_command && arguments.bench.predicts);
}

/// A plan is checked for the planned GPU (tasks::planned_attention).
void check_attention(const Command& command, const Arguments& arguments) {
  const std::optional<AttentionKernel> kernel = arguments.run.task.attention;
  if (!kernel) return;
  const std::string obstacle =
      only_plans(command, arguments) ? std::string() : attention_obstacle(*kernel, arguments.run.engine.precision);
  if (!obstacle.empty())
    throw UsageError(fmt::format("--attention {}: {}; leave it out", to_string(*kernel), obstacle));
  if (arguments.run.engine.parallel.deterministic && !is_deterministic(*kernel)) {
    throw UsageError(
        fmt::format("--attention {} and --deterministic exclude each other: its gradients have other bits in each run; "
                    "leave one of them out",
                    to_string(*kernel)));
  }
}

}  // namespace

void resolve(const Command& command, Arguments& arguments) {
  const bool has_output = !arguments.run.engine.output.empty();
  resolve_precision(arguments);
  resolve_no_fsdp(command, arguments);
  const bool asks = command.bit == ask_command || command.bit == eval_command || command.bit == generate_command ||
                    command.bit == classify_command;
  if (!asks) arguments.task->check(arguments.run);  // the others may take missing values from a run
  check_loss_scale(arguments);
  check_tf32(arguments);
  check_attention(command, arguments);
  const bool trains = (command.bit & train_command) != 0;
  if (trains) check_doings(arguments);
  arguments.task->resolve(arguments.run, arguments.sources, command.bit);
  if (trains) resolve_train(command, arguments);
  if ((command.bit & compare_command) != 0) resolve_compare(arguments);
  if (command.bit == plan_command) resolve_batches(arguments);
  if (command.bit == bench_command) exclude(arguments, "micro-tokens", "micro-batch");
  if (command.bit == eval_command || command.bit == prepare_command) {
    const bool needs_model = command.bit == eval_command || arguments.task->prepares_for_model();
    need(!needs_model || !arguments.model.empty(), command, "model");
    need(!arguments.data.empty(), command, "data");
    need(has_output, command, "output");
  }
  if (command.bit == ask_command) {
    need(!arguments.model.empty(), command, "model");
    need(!arguments.ask.context.empty(), command, "context");
  }
  if (command.bit == generate_command || command.bit == classify_command) {
    need(!arguments.model.empty(), command, "model");
  }
  if (command.bit == tokenize_command) check_tokenizer(command, arguments);
}

void resolve_ranks(Arguments& arguments, std::size_t ranks) {
  if (arguments.plan.every_mode) throw UsageError("--mode all: only mylos plan accepts all; name one mode");
  resolve_batch(arguments, ranks);
}

void resolve_batch(Arguments& arguments, std::size_t ranks) {
  if (arguments.batch_is_per_rank) arguments.run.task.batch *= ranks;
  arguments.batch_is_per_rank = false;
  arguments.task->fit_ranks(arguments.run, ranks);
}

}  // namespace mylos::app
