#include "app/options/consistency.hpp"

#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/plan_options.hpp"
#include "app/options/tool_options.hpp"
#include "app/options/train_options.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/attention/attention.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace mylos::app {
namespace {

bool was_given(const Arguments& arguments, std::string_view name) { return arguments.sources.was_given(name); }

bool was_configured(const Arguments& arguments, const char* name) { return arguments.sources.was_configured(name); }

void exclude(const Arguments& arguments, const char* one, const char* other) { arguments.sources.exclude(one, other); }

bool is_overridden(const Arguments& arguments, std::string_view name, std::string_view other) {
  return arguments.sources.is_overridden(name, other);
}

bool is_off(const Option& option, const Arguments& arguments) {
  return option.is_switch() && !arguments.sources.switched_on.contains(option.name);
}

/// Resets options of a configuration that one on the command line excludes.
void drop_what_is_excluded(const Arguments& defaults, Arguments& arguments) {
  const auto drop = [&](const Option& option, const Option& given) {
    const bool is_replaced = is_overridden(arguments, option.name, given.name) && !is_off(given, arguments);
    if (is_replaced && option.copy) option.copy(arguments, defaults);
  };
  for (const Option& option : option_table(*arguments.task)) {
    if (option.traits.excludes.empty()) continue;
    for (const std::string& name : split(option.traits.excludes, ' ')) {
      const Option& other = *find_option(name, *arguments.task);
      drop(other, option);
      drop(option, other);
    }
  }
}

/// Resolves precedence between the command line and a configuration: the setting on the command line wins.
void drop_what_was_overridden(const Arguments& defaults, Arguments& arguments) {
  if (was_given(arguments, "epochs") && !was_given(arguments, "steps")) arguments.run.engine.steps = 0;
  if (was_given(arguments, "warmup") && !was_given(arguments, "warmup-steps")) {
    arguments.run.engine.warmup_steps.reset();
  }
  train::TrainConfig& engine = arguments.run.engine;
  const std::size_t parts = engine.accumulation;
  drop_what_is_excluded(defaults, arguments);
  // Another division into micro-batches does not change the batch that a configuration has as parts of a rank's.
  if (engine.accumulation != parts && arguments.batch_per_rank) *arguments.batch_per_rank *= parts;
  for (const Option& option : option_table(*arguments.task)) {
    if (option.traits.lays_out && arguments.sources.was_given(option.name)) engine.recorded_layout.reset();
  }
  if (was_given(arguments, "gemm") || was_given(arguments, "tf32")) arguments.run.engine.gemm.recorded.reset();
  if (was_given(arguments, "attention")) arguments.run.task.recorded_attention.reset();
}

std::string chosen_value(std::string_view name, const Arguments& arguments) {
  return plain_text(find_option(name, *arguments.task)->print(arguments));
}

/// Resets settings of a choice that a configuration made and the command line replaced, such as those of an optimizer.
/// Settings on the command line itself are refused later.
void drop_settings_of_replaced_choices(const Arguments& defaults, Arguments& arguments) {
  for (const Option& option : option_table(*arguments.task)) {
    const auto& [chooser, choice, why, unless] = option.traits.needs;
    if (choice.empty() || !arguments.sources.was_given(chooser)) continue;
    if (chosen_value(chooser, arguments) != choice) option.copy(arguments, defaults);
  }
}

/// Refuses settings of a choice that is not made. Allows their defaults, which a run.json contains.
void check_settings_of_choices(const Arguments& defaults, const Arguments& arguments) {
  for (const Option& option : option_table(*arguments.task)) {
    const auto& [chooser, choice, why, unless] = option.traits.needs;
    if (choice.empty()) continue;
    const std::string chosen = chosen_value(chooser, arguments);
    if (chosen == choice) continue;
    if (arguments.sources.was_given(option.name)) {
      throw UsageError(fmt::format("--{} needs --{} {}, but the {} is {}; leave it out, or give --{} {}", option.name,
                                   chooser, choice, chooser, chosen, chooser, choice));
    }
    if (option.print(arguments) == option.print(defaults)) continue;
    throw UsageError(fmt::format("{} needs {} {}, but the {} is {}; leave it out of the configuration", option.name,
                                 chooser, choice, chooser, chosen));
  }
}

/// Refuses settings that have no effect without another option, such as those of evaluations without --dev.
/// Those of a recipe are left out.
void check_settings_of_options(const Arguments& defaults, Arguments& arguments) {
  for (const Option& option : option_table(*arguments.task)) {
    if (!lacks_needed(option, arguments) || option.print(arguments) == option.print(defaults)) continue;
    if (!arguments.train->recipe.empty() && !arguments.sources.was_given(option.name)) {
      option.copy(arguments, defaults);
      continue;
    }
    const auto& [needed, choice, why, unless] = option.traits.needs;
    const std::string other = unless.option.empty() ? "" : fmt::format(", or --{} {}", unless.option, unless.value);
    throw UsageError(fmt::format("--{} needs --{}{}: {}", option.name, needed, other, why));
  }
}

/// Refuses contradictory settings of the optimizer and its learning rate.
void check_optimizer(const Arguments& defaults, Arguments& arguments) {
  drop_settings_of_replaced_choices(defaults, arguments);
  check_settings_of_choices(defaults, arguments);
  const train::TrainConfig& engine = arguments.run.engine;
  const auto contradiction = engine.optimizer.kind().contradiction;
  if (const std::string text = contradiction ? contradiction(engine.optimizer) : ""; !text.empty()) {
    throw UsageError(text);
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

/// Refuses options together with those that their rows exclude. Allows their defaults in a configuration, which a
/// run.json contains.
void check_exclusions(const Command& command, const Arguments& arguments) {
  const Arguments defaults = default_arguments(command, *arguments.task);
  OptionSources sources = arguments.sources;
  std::erase_if(sources.configured, [&](const std::string& name) {
    const Option& option = *find_option(name, *arguments.task);
    return option.print && option.print(arguments) == option.print(defaults);
  });
  for (const Option& option : option_table(*arguments.task)) {
    if (option.traits.excludes.empty() || is_off(option, arguments) || !has_option(command, option)) continue;
    for (const std::string& other : split(option.traits.excludes, ' ')) sources.exclude(option.name, other);
  }
}

/// Resolves the batch for one rank: --gradient-accumulation-steps multiplies a batch per rank.
void resolve_batches(Arguments& arguments) {
  std::size_t& batch = arguments.run.task.batch;
  const std::size_t parts = arguments.run.engine.accumulation;
  arguments.batch_is_per_rank = arguments.batch_per_rank.has_value();
  if (arguments.batch_per_rank) {
    batch = *arguments.batch_per_rank * std::max<std::size_t>(parts, 1);
  } else if (parts > batch) {
    throw UsageError(fmt::format("--gradient-accumulation-steps {}: expected at most the batch, {}", parts, batch));
  }
  arguments.batch_per_rank.reset();
}

[[noreturn]] void fail_without(const Command& command, std::string_view name) {
  throw UsageError(fmt::format("{} needs --{}; see mylos {} --help", command.name, name, command.name));
}

/// Refuses to go on without the options of the command's row.
void check_required(const Command& command, const Arguments& arguments) {
  for (const Option& option : option_table(*arguments.task)) {
    if (!names_command(command.needs, option.name) || !option.print(arguments).is_null()) continue;
    const bool is_optional =
        command.name == "prepare" && option.name == "model" && !arguments.task->prepares_for_model();
    if (!is_optional) fail_without(command, option.name);
  }
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
  const std::string_view given = engine.accumulation > 0  ? "gradient-accumulation-steps"
                                 : engine.micro_batch > 0 ? arguments.sources.spelling("micro-batch")
                                                          : "micro-tokens";
  throw UsageError(
      fmt::format("--deterministic divides every step into {} micro-batch groups (--leaves); leave out --{}",
                  engine.parallel.micro_batch_groups, given));
}

/// Refuses communicators that this build lacks.
void check_communicator(const Arguments& arguments) {
  if (arguments.train->communicator == "nccl" && !parallel::has_nccl()) {
    throw UsageError("--communicator nccl: this build has no NCCL; use auto or mpi");
  }
  if (arguments.train->communicator == "mpi" && !parallel::has_mpi()) {
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

/// Checks the options of --extend, which continues from the last checkpoint of the run in --output.
void check_extend(const Arguments& arguments) {
  if (!arguments.train->extend) return;
  if (arguments.train->resume != "auto") {
    throw UsageError(
        fmt::format("--extend and --resume {} exclude each other: --extend continues from the last checkpoint "
                    "in --output; leave one of them out",
                    arguments.train->resume));
  }
}

void resolve_train(const Command& command, Arguments& arguments) {
  const Arguments defaults = default_arguments(command, *arguments.task);
  check_evaluated(arguments);
  check_required(command, arguments);
  drop_what_was_overridden(defaults, arguments);
  check_optimizer(defaults, arguments);
  resolve_batches(arguments);
  check_deterministic(arguments);
  check_communicator(arguments);
  check_settings_of_options(defaults, arguments);
  check_extend(arguments);
}

/// Refuses modes of a single run: compare sets modes and numbers of ranks itself.
void resolve_compare(const Arguments& arguments) {
  if (was_given(arguments, "mode")) throw UsageError("compare runs several modes: use --modes A,B instead of --mode");
  if (was_given(arguments, "extend"))
    throw UsageError("compare starts every run from the beginning; leave out --extend");
  if (was_given(arguments, "dry-run")) throw UsageError("compare has no --dry-run; leave it out");
  const auto tells = [&](const char* word) { return arguments.compare->launcher.find(word) != std::string::npos; };
  for (const ComparedRanks& ranks : arguments.compare->ranks) {
    if (ranks.nodes == 0 || tells("{nodes}") || tells("{ranks_per_node}")) continue;
    throw UsageError(fmt::format(
        "--ranks {} needs {{nodes}} or {{ranks_per_node}} in --launcher, such as \"srun --nodes {{nodes}} -n {{n}}\"",
        ranks.name()));
  }
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
        "--tf32 needs a GPU of NVIDIA, and this build is for none; leave it out, or build with "
        "-DMYLOS_ENABLE_CUDA=ON");
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
    if (arguments.tokenize->decode || arguments.chat) fail_without(command, "model");
    if (arguments.tokenize->vocabulary.empty())
      throw UsageError("tokenize needs --model or --vocab; see mylos tokenize --help");
    return;
  }
  exclude(arguments, "model", "vocab");
  for (const char* name : {"chat", "offsets"}) exclude(arguments, "decode", name);
  exclude(arguments, "chat", "offsets");
  if (was_given(arguments, "cased")) throw UsageError("tokenize: --cased needs --vocab instead of --model");
}

/// Returns whether the command only predicts, so that this build need not be able to compute the run.
bool only_plans(const Command& command, const Arguments& arguments) {
  return command.name == "plan" || (command.name == "bench" && arguments.bench->predicts);
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
  check_exclusions(command, arguments);
  if (!command.takes_settings_of_run) arguments.task->check(arguments.run);
  check_loss_scale(arguments);
  check_tf32(arguments);
  check_attention(command, arguments);
  if (command.trains()) check_doings(arguments);
  arguments.task->resolve(arguments.run, arguments.sources, command.trains() ? "train" : command.name);
  command.trains() ? resolve_train(command, arguments) : check_required(command, arguments);
  if (command.name == "compare") resolve_compare(arguments);
  if (command.name == "plan") resolve_batches(arguments);
  if (command.name == "tokenize") check_tokenizer(command, arguments);
}

void resolve_ranks(Arguments& arguments, std::size_t ranks) {
  if (arguments.plan->every_strategy) throw UsageError("--mode all: only mylos plan accepts all; name one mode");
  resolve_batch(arguments, ranks);
}

void resolve_batch(Arguments& arguments, std::size_t ranks) {
  if (arguments.batch_is_per_rank) arguments.run.task.batch *= ranks;
  arguments.batch_is_per_rank = false;
  arguments.task->fit_ranks(arguments.run, ranks);
}

}  // namespace mylos::app
