#include "app/options/options.hpp"
#include "app/options/train_options.hpp"

#include "core/kernels/products/gemm_providers.hpp"
#include "train/engine/loop/loss_scale.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>

/// Options for optimization, evaluation and computation.
namespace mylos::app {
namespace {

constexpr std::string_view length = "Length", batches = "Batches", optimizer = "Optimizer", computing = "Computing",
                           run = "Run";
constexpr CountRange sequences{1, 1'000'000};
constexpr const char* batch_of_bench =
    "bench batch takes --batch, the samples of a step on all ranks together, and tries all micro-batches";

const std::vector<Choice>& precision_choices() {
  static const std::vector<Choice> choices = {{"float", {"32", "fp32", "float32"}},
                                              {"bfloat16", {"bf16", "bf16-mixed"}},
                                              {"half", {"fp16", "float16", "16-mixed"}}};
  return choices;
}

Option precision_option() {
  return enumeration_option(
      named("precision", "TYPE", computing, "train plan eval ask bench/gemm bench/step bench/batch generate classify",
            "type of parameters and activations: float, bfloat16 or half; sums, master weights and optimizer state "
            "stay float",
            {.on_resume = OnResume::unfinished, .lays_out = true, .is_shown = true}),
      precision_choices(), MYLOS_FIELD(run.engine.precision),
      [](std::string_view name) { return parse_precision(name).value(); },
      [](Precision precision) { return to_string(precision); });
}

Option export_precision_option() {
  return enumeration_option(
      named("export-precision", "TYPE", computing, "train checkpoint/export merge",
            "type of exported weights: float, bfloat16 or half; default: float if the run's --precision is float, else "
            "the type of its initial weights",
            {.on_resume = OnResume::unfinished, .from_run = "checkpoint/export"}),
      precision_choices(), MYLOS_FIELD(run.task.export_precision), parse_precision, name_or_null<Precision>);
}

Option loss_scale_option() {
  Option option = named("initial-loss-scale", "N", computing, "train bench",
                        "initial loss scale with --precision half, a power of two; the scale is doubled after 2000 "
                        "steps with finite gradients and halved after a step without",
                        {.on_resume = OnResume::free});
  option =
      parsed_option(std::move(option),
                    fmt::format("a power of two from {} to {}", train::LossScale::least, train::LossScale::largest),
                    MYLOS_FIELD(run.engine.initial_loss_scale), [](std::string_view text) {
                      const auto value = parse_count(text, {});
                      return value && train::is_loss_scale(static_cast<double>(*value)) ? value : std::nullopt;
                    });
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    return static_cast<std::size_t>(arguments.run.engine.initial_loss_scale);
  };
  return option;
}

/// Its alias, a peer's switch, is given alone or with true or false.
Option recompute_option() {
  Option option = enumeration_option(
      named("recompute", "WHAT", computing, "train plan bench/step bench/batch",
            "activations to recompute in the backward pass instead of keeping them: none, attention or layer; layer if "
            "given without a value",
            {.on_resume = OnResume::free, .lays_out = true}),
      {{"none", {}}, {"attention", {"selective"}}, {"layer", {"full"}}}, MYLOS_FIELD(run.engine.recompute),
      [](std::string_view name) { return nn::parse_recompute(name).value_or(nn::Recompute::none); },
      [](nn::Recompute recompute) { return nn::to_string(recompute); });
  option.alone = "layer";
  option.parse = [parse_name = option.parse](Arguments& arguments, std::string_view text) {
    const auto is_on = parse_truth(text);
    return parse_name(arguments, !is_on ? text : *is_on ? "layer" : "none");
  };
  return option;
}

Option gemm_option() {
  std::vector<Choice> choices{{train::GemmConfig::automatic, {}}};
  for (const std::string& name : built_exact_gemm_providers()) choices.push_back({name, {}});
  return choice_option(named("gemm", "PROVIDER", computing, "train eval ask bench/step bench/batch",
                             "provider of matrix products: " + describe(choices) +
                                 "; auto: the fastest for each product, measured when the run starts and cached",
                             {.on_resume = OnResume::free}),
                       choices, MYLOS_FIELD(run.engine.gemm.provider));
}

Option attention_option() {
  return enumeration_option(
      named(
          "attention", "KERNEL", computing, "train plan eval ask bench/step bench/batch",
          "attention kernel: portable; tensor-cores (bfloat16 or half on GPUs of compute capability 8.0 and later and "
          "on AMD's, half on 7.0); cudnn (bfloat16 or half from 8.0 on, without dropout); auto: the fastest of those "
          "that agree with portable on this device when the run starts, by times that are cached if there are several",
          {.on_resume = OnResume::free}),
      {{"auto", {}}, {"portable", {}}, {"tensor-cores", {}}, {"cudnn", {}}}, MYLOS_FIELD(run.task.attention),
      find_attention_kernel,
      [](const std::optional<AttentionKernel>& kernel) { return kernel ? to_string(*kernel) : "auto"; });
}

Option tf32_option() {
  return switch_option(
      named("tf32", "", computing, "train eval ask bench/gemm bench/step bench/batch",
            "faster, less precise matrix products (TF32); needs --precision float and an Ampere or newer GPU",
            {.on_resume = OnResume::free}),
      MYLOS_FIELD(run.engine.gemm.tf32));
}

/// A plain number counts steps; with a unit it is a duration.
Option checkpoint_every_option() {
  Option option = named("checkpoint-every", "500|10m|epoch|never", run, "train plan",
                        "interval between checkpoints: a number of steps, a time with its unit, or epoch; never: write "
                        "one only if a signal or the time limit ends the run",
                        {.on_resume = OnResume::free});
  option.expects = fmt::format("a number of steps, epoch, never, or {}", duration_expected);
  option.choices = {"epoch", "never"};
  option.parse = [](Arguments& arguments, std::string_view text) {
    train::CheckpointConfig& checkpoints = arguments.run.engine.checkpoints;
    const bool is_epoch = text == "epoch", is_word = is_epoch || text == "never";
    const auto steps = parse_count(text, {});
    const bool is_number = text.find_first_not_of("0123456789.") == std::string_view::npos;
    const auto seconds = is_number || is_word ? std::nullopt : parse_duration(text);
    if (!steps && !seconds && !is_word) return false;
    checkpoints.every_epoch = is_epoch;
    checkpoints.every_steps = steps.value_or(0);
    checkpoints.every_seconds = seconds.value_or(0.0);
    return true;
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const train::CheckpointConfig& checkpoints = arguments.run.engine.checkpoints;
    if (checkpoints.every_steps > 0) return checkpoints.every_steps;
    if (checkpoints.every_epoch) return "epoch";
    if (checkpoints.every_seconds > 0.0) return fmt::format("{}s", checkpoints.every_seconds);
    return "never";
  };
  return option;
}

std::vector<Option> checkpoint_options() {
  return {
      checkpoint_every_option(),
      count_option(
          named("keep", "K", run, "train", "number of latest checkpoints to keep", {.on_resume = OnResume::free}),
          {1, 1'000'000}, MYLOS_FIELD(run.engine.checkpoints.keep)),
      count_or_unset_option(
          named("writers", "N", run, "train",
                "number of ranks that write a checkpoint or a large export; default: 4 per node, at most 64",
                {.on_resume = OnResume::free}),
          {}, MYLOS_FIELD(run.engine.checkpoints.writers)),
      enumeration_option(
          named("on-save-error", "WHAT", run, "train",
                "action if a checkpoint cannot be written: stop or continue; earlier checkpoints are kept",
                {.on_resume = OnResume::free}),
          {{"stop", {}}, {"continue", {}}}, MYLOS_FIELD(run.engine.checkpoints.stop_on_error),
          [](std::string_view name) { return name == "stop"; }, [](bool stop) { return stop ? "stop" : "continue"; }),
  };
}

/// Accepts -1, Trainer's default, as unset.
Option steps_option() {
  Option option =
      count_or_unset_option(named("steps", "N", length, "train plan", "number of training steps; overrides --epochs",
                                  {.on_resume = OnResume::longer}),
                            {}, MYLOS_FIELD(run.engine.steps));
  option.parse = [parse_number = option.parse](Arguments& arguments, std::string_view text) {
    if (text == "-1") arguments.run.engine.steps = 0;
    return text == "-1" || parse_number(arguments, text);
  };
  return option;
}

std::vector<Option> length_options() {
  return {
      real_option(named("epochs", "N", length, "train plan", "number of passes over the training data",
                        {.on_resume = OnResume::longer}),
                  {0, 100'000, true}, MYLOS_FIELD(run.engine.epochs)),
      steps_option(),
      count_option(with_help(named("batch", "N", batches, "train plan bench/step bench/batch generate",
                                   "batch size: sequences or images per step on all ranks together",
                                   {.lays_out = true, .excludes = "batch-per-rank", .is_shown = true}),
                             {{"generate", "number of prompts that are continued together"}}),
                   sequences, MYLOS_FIELD(run.task.batch)),
      count_option(with_help(named("batch-per-rank", "N", batches, "train plan",
                                   "batch size per rank; excludes --batch", {.lays_out = true}),
                             {{"bench", batch_of_bench}}),
                   sequences, MYLOS_FIELD(batch_per_rank)),
      count_or_unset_option(
          named("micro-batch", "N", batches, "train plan bench/step",
                "micro-batch size: sequences per forward and backward pass; gradients accumulate; default: the most "
                "that fit in memory",
                {.on_resume = OnResume::free,
                 .lays_out = true,
                 .excludes = "gradient-accumulation-steps",
                 .is_shown = true}),
          sequences, MYLOS_FIELD(run.engine.micro_batch)),
      count_or_unset_option(
          named("micro-tokens", "N", batches, "train plan bench/step",
                "largest micro-batch in tokens; it holds whole sequences; excludes --micro-batch",
                {.on_resume = OnResume::free, .lays_out = true, .excludes = "gradient-accumulation-steps micro-batch"}),
          {}, MYLOS_FIELD(run.engine.micro_tokens)),
      count_or_unset_option(with_help(named("gradient-accumulation-steps", "N", batches, "train plan",
                                            "number of micro-batches per step and rank; excludes --micro-batch",
                                            {.on_resume = OnResume::free, .lays_out = true}),
                                      {{"bench", batch_of_bench}}),
                            sequences, MYLOS_FIELD(run.engine.accumulation)),
  };
}

/// Ascending steps. run.json stores them as typed, because a key of --config cannot be a list.
Option decay_steps_option() {
  Option option = named("decay-steps", "N,N,...", optimizer, "train",
                        "steps at which the learning rate is multiplied by --decay-factor; needs --schedule step",
                        {.needs = {"schedule", "step"}});
  option = parsed_option(
      std::move(option), "whole numbers from 1 on, ascending and separated by commas",
      MYLOS_FIELD(run.engine.decay_steps), [](std::string_view text) {
        auto steps = parse_list<std::size_t>(text, [](const std::string& word) { return parse_count(word, {}); });
        const bool ascends = steps && std::ranges::adjacent_find(*steps, std::greater_equal<>()) == steps->end();
        return ascends ? steps : std::nullopt;
      });
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const std::vector<std::size_t>& steps = arguments.run.engine.decay_steps;
    if (steps.empty()) return nullptr;
    return fmt::format("{}", fmt::join(steps, ","));
  };
  return option;
}

Option freeze_option() {
  Option option = named("freeze", "PATTERNS", optimizer, "train plan bench/step",
                        "tensors that keep their values, separated by commas: embeddings, layers.0-5, body, head, or a "
                        "glob of tensor names; their gradients are not computed, kept or exchanged; none: no tensor",
                        {.lays_out = true, .is_shown = true});
  option.expects = "patterns separated by commas";
  option.parse = [](Arguments& arguments, std::string_view text) {
    std::vector<std::string> patterns = split(text, ',');
    if (std::ranges::any_of(patterns, &std::string::empty)) return false;
    if (text == "none") patterns.clear();
    arguments.run.engine.freeze = std::move(patterns);
    return true;
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const std::vector<std::string>& patterns = arguments.run.engine.freeze;
    if (patterns.empty()) return nullptr;
    return fmt::format("{}", fmt::join(patterns, ","));
  };
  return option;
}

std::vector<Choice> schedule_choices() {
  std::vector<Choice> choices;
  for (const nn::ScheduleName& schedule : nn::schedule_names()) choices.push_back({schedule.name, schedule.aliases});
  return choices;
}

std::vector<Option> schedule_options() {
  return {
      real_option(named("learning-rate", "X", optimizer, "train", "peak learning rate"), {0, unbounded},
                  MYLOS_FIELD(run.engine.learning_rate)),
      real_option(
          named("learning-rate-min", "X", optimizer, "train",
                "lower bound of the learning rate after warm-up; every schedule but constant and step ends there"),
          {0, unbounded}, MYLOS_FIELD(run.engine.learning_rate_min)),
      enumeration_option(
          named("schedule", "NAME", optimizer, "train", "learning rate schedule after warm-up: " + nn::schedule_list()),
          schedule_choices(), MYLOS_FIELD(run.engine.schedule), nn::parse_schedule,
          [](nn::ScheduleKind kind) { return nn::to_string(kind); }),
      freeze_option(),
      decay_steps_option(),
      real_option(
          named("decay-factor", "X", optimizer, "train", "factor applied to the learning rate at each of --decay-steps",
                {.needs = {"schedule", "step"}}),
          {0, unbounded, true}, MYLOS_FIELD(run.engine.decay_factor)),
      real_option(
          named("decay-fraction", "X", optimizer, "train", "last part of the steps, in which the learning rate falls",
                {.needs = {"schedule", "warmup-stable-decay"}}),
          {0, 1, true}, MYLOS_FIELD(run.engine.decay_fraction)),
      real_option(named("decay-power", "X", optimizer, "train", "power of the part of the steps that remains",
                        {.needs = {"schedule", "polynomial"}}),
                  {0, unbounded, true}, MYLOS_FIELD(run.engine.decay_power)),
      real_option(
          named("warmup", "R", optimizer, "train", "fraction of the steps in which the learning rate rises from 0"),
          {0, 1}, MYLOS_FIELD(run.engine.warmup_ratio)),
      count_option(
          named("warmup-steps", "N", optimizer, "train", "warm-up in steps; overrides --warmup unless it is 0"), {0},
          MYLOS_FIELD(run.engine.warmup_steps)),
  };
}

std::string setting_help(const nn::OptimizerKind& kind, const nn::OptimizerSetting& setting) {
  const bool is_of_default = kind.name == nn::OptimizerConfig().name;
  return fmt::format("{}{}", setting.help, is_of_default ? "" : fmt::format("; needs --optimizer {}", kind.name));
}

/// The settings of kinds of optimizers have their options from the kind's row.
Option setting_option(const nn::OptimizerKind& kind, const nn::OptimizerSetting& setting) {
  const auto field = [name = setting.name](auto& target) -> auto& { return target.run.engine.optimizer.value(name); };
  Option option = named(std::string(setting.name), setting.is_switch ? "" : "X", optimizer, "train",
                        setting_help(kind, setting), {.needs = {"optimizer", kind.name}});
  if (!setting.is_switch) return real_option(std::move(option), setting.range, field);
  option = switch_option(std::move(option), field);
  option.print = [field](const Arguments& arguments) { return nlohmann::ordered_json(field(arguments) != 0.0); };
  return option;
}

Option optimizer_option() {
  std::vector<Choice> choices;
  for (const nn::OptimizerKind& kind : nn::optimizer_kinds()) choices.push_back({std::string(kind.name), kind.aliases});
  const std::string help = describe(choices);
  return choice_option(named("optimizer", "NAME", optimizer, "train", help), std::move(choices),
                       MYLOS_FIELD(run.engine.optimizer.name));
}

std::vector<Option> optimizer_options() {
  std::vector<Option> options = {
      optimizer_option(),
      real_option(named("weight-decay", "X", optimizer, "train",
                        "weight decay: added to the gradient with SGD, decoupled with the others; not applied to "
                        "biases and LayerNorm without --decay-all"),
                  {0, unbounded}, MYLOS_FIELD(run.engine.optimizer.weight_decay)),
      switch_option(
          named("decay-all", "", optimizer, "train", "apply weight decay to biases and one-dimensional tensors too"),
          MYLOS_FIELD(run.engine.optimizer.decay_all)),
  };
  for (const nn::OptimizerKind& kind : nn::optimizer_kinds()) {
    for (const nn::OptimizerSetting& setting : kind.settings) options.push_back(setting_option(kind, setting));
  }
  return options;
}

std::vector<Option> update_options() {
  return {
      real_option(named("clip", "X", optimizer, "train", "largest global norm of gradients; 0 disables clipping"),
                  {0, unbounded}, MYLOS_FIELD(run.engine.clip)),
      real_option(named("dropout", "P", optimizer, "train plan", "dropout probability; default: the model's"),
                  {0, 1, false, true}, MYLOS_FIELD(run.task.dropout)),
      count_option(with_help(named("seed", "N", optimizer, "train generate",
                                   "random seed for shuffling, dropout and a new head"),
                             {{"generate", "random seed for sampling"}}),
                   {0, std::numeric_limits<std::uint64_t>::max()}, MYLOS_FIELD(run.engine.seed)),
  };
}

std::vector<Option> run_options() {
  return {
      precision_option(),
      export_precision_option(),
      loss_scale_option(),
      gemm_option(),
      attention_option(),
      tf32_option(),
      recompute_option(),
      unrecorded(switch_option(with_help(named("overwrite", "", run, "train eval prepare report sweep",
                                               "start over in an output directory that contains a run"),
                                         {{"eval prepare report", "replace files that mylos did not write"},
                                          {"sweep", "write the job script anew, without lines that were added to it"}}),
                               MYLOS_FIELD(overwrite))),
  };
}

}  // namespace

std::vector<Option> training_options(const tasks::TaskKind& task) {
  std::vector<Option> all;
  for (std::vector<Option> part : {length_options(), schedule_options(), optimizer_options(), update_options(),
                                   evaluation_options(task), run_options(), course_options(), checkpoint_options()}) {
    std::ranges::move(part, std::back_inserter(all));
  }
  return all;
}

}  // namespace mylos::app
