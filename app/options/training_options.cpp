#include "app/options/options.hpp"
#include "app/options/recipes.hpp"

#include "core/kernels/gemm_providers.hpp"
#include "train/engine/loss_scale.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <limits>

/// Options for optimization, evaluation and computation.
namespace mylos::app {
namespace {

constexpr std::string_view length = "Length", batches = "Batches", optimizer = "Optimizer", computing = "Computing",
                           run = "Run";
constexpr CountRange sequences{1, 1'000'000};

const std::vector<Choice>& precision_choices() {
  static const std::vector<Choice> choices = {{"float", {"32", "fp32", "float32"}},
                                              {"bfloat16", {"bf16", "bf16-mixed"}},
                                              {"half", {"fp16", "float16", "16-mixed"}}};
  return choices;
}

Option precision_option() {
  return enumeration_option(
      named("precision", {}, "TYPE", computing,
            "train plan eval ask bench/gemm bench/step bench/batch generate classify",
            "type of parameters and activations: float, bfloat16 or half; sums, master weights and optimizer state "
            "stay float",
            {.on_resume = OnResume::free, .lays_out = true}),
      precision_choices(), [](auto& a) -> auto& { return a.run.engine.precision; },
      [](std::string_view name) { return parse_precision(name).value(); },
      [](Precision precision) { return to_string(precision); });
}

Option export_precision_option() {
  Option option = named("export-precision", {}, "TYPE", computing, "train checkpoint/export",
                        "type of exported weights: float, bfloat16 or half; default: float if the run's --precision is "
                        "float, else the type of its initial weights",
                        {.on_resume = OnResume::free});
  option.expects = describe(precision_choices());
  option.choices = names_of(precision_choices());
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto name = parse_choice(text, precision_choices());
    if (name) arguments.run.task.export_precision = parse_precision(*name);
    return name.has_value();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const std::optional<Precision>& precision = arguments.run.task.export_precision;
    return precision ? nlohmann::ordered_json(to_string(*precision)) : nlohmann::ordered_json(nullptr);
  };
  return option;
}

Option loss_scale_option() {
  Option option = named("initial-loss-scale", {"fp16-init-scale"}, "N", computing, "train bench",
                        "initial loss scale with --precision half, a power of two; the scale is doubled after 2000 "
                        "steps with finite gradients and halved after a step without",
                        {.on_resume = OnResume::free});
  option.expects = fmt::format("a power of two from {} to {}", train::LossScale::least, train::LossScale::largest);
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto value = parse_count(text, {});
    if (!value || !train::is_loss_scale(static_cast<double>(*value))) return false;
    arguments.run.engine.initial_loss_scale = static_cast<double>(*value);
    return true;
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    return static_cast<std::size_t>(arguments.run.engine.initial_loss_scale);
  };
  return option;
}

/// Its alias, a peer's switch, is given alone or with true or false.
Option recompute_option() {
  Option option = enumeration_option(
      named("recompute", {"gradient-checkpointing"}, "WHAT", computing, "train plan bench/step bench/batch",
            "activations to recompute in the backward pass instead of keeping them: none, attention or layer; layer if "
            "given without a value",
            {.on_resume = OnResume::free, .lays_out = true}),
      {{"none", {}}, {"attention", {"selective"}}, {"layer", {"full"}}},
      [](auto& a) -> auto& { return a.run.engine.recompute; },
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
  return choice_option(
      named("gemm", {}, "PROVIDER", computing, "train eval ask bench/step bench/batch",
            "provider of matrix products: " + describe(choices) +
                "; auto: the fastest for each product, measured when the run starts and cached",
            {.on_resume = OnResume::free}),
      choices, [](auto& a) -> auto& { return a.run.engine.gemm.provider; });
}

Option attention_option() {
  return enumeration_option(
      named("attention", {}, "KERNEL", computing, "train plan eval ask bench/step bench/batch",
            "attention kernel: portable; tensor-cores (bfloat16 or half on GPUs of compute capability 8.0 and later, "
            "half on 7.0); cudnn (bfloat16 or half from 8.0 on, without dropout); auto: the fastest of those that "
            "agree with portable on this device when the run starts, by times that are cached if there are several",
            {.on_resume = OnResume::free}),
      {{"auto", {}}, {"portable", {}}, {"tensor-cores", {}}, {"cudnn", {}}},
      [](auto& a) -> auto& { return a.run.task.attention; }, find_attention_kernel,
      [](const std::optional<AttentionKernel>& kernel) { return kernel ? to_string(*kernel) : "auto"; });
}

Option tf32_option() {
  return switch_option(
      named("tf32", {}, "", computing, "train eval ask bench/gemm bench/step bench/batch",
            "faster, less precise matrix products (TF32); needs --precision float and an Ampere or newer GPU",
            {.on_resume = OnResume::free}),
      [](auto& a) -> auto& { return a.run.engine.gemm.tf32; });
}

Option resume_option() {
  Option option = named("resume", {"resume-from-checkpoint"}, "auto|PATH|never", run, "train",
                        "auto: continue an unfinished run in the output directory from its latest checkpoint; PATH: "
                        "start from that checkpoint, or from the latest one in that run's directory; never: start at "
                        "step 1; true and false mean auto and never [auto]");
  option.expects =
      "auto (as without it: an unfinished run in --output goes on by itself), never, or a checkpoint or a run's "
      "directory";
  option.choices = {"auto", "never"};
  option.parse = [](Arguments& arguments, std::string_view text) {
    // Trainer's words. Shorter ones that a switch accepts, such as 1 or y, are paths here.
    const bool is_truth = text.size() >= std::string_view("true").size();
    const auto truth = is_truth ? parse_truth(text) : std::nullopt;
    if (!text.empty()) arguments.train.resume = !truth ? text : *truth ? "auto" : "never";
    return !text.empty();
  };
  return option;
}

/// A plain number counts steps; with a unit it is a duration.
Option checkpoint_every_option() {
  Option option = named("checkpoint-every", {"save-steps"}, "500|10m|epoch|never", run, "train plan",
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

/// The names are checked when the recipe is applied. A run that resumes has the settings of its own recipe.
Option recipe_option() {
  Option option =
      named("recipe", {}, "NAME", run, "train",
            "settings of a program that fine-tunes the same models; options on the command line override them; list: "
            "print the recipes, and exit",
            {.on_resume = OnResume::free});
  option.expects = "the name of a recipe, or list";
  option.choices = recipe_names();
  option.parse = [](Arguments& arguments, std::string_view text) {
    arguments.train.recipe = text;
    return !text.empty();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    if (arguments.train.recipe.empty()) return nullptr;
    return arguments.train.recipe;
  };
  return option;
}

std::vector<Option> checkpoint_options() {
  return {
      checkpoint_every_option(),
      unrecorded(choice_option(
          named("save-strategy", {}, "NAME", run, "train",
                "Trainer's name for --checkpoint-every: steps (as many as that option says, else 500), epoch, or no "
                "(never)"),
          {{"no", {}}, {"epoch", {}}, {"steps", {}}}, [](auto& a) -> auto& { return a.train.save_strategy; })),
      count_option(
          named("keep", {"save-total-limit"}, "K", run, "train", "number of latest checkpoints to keep",
                {.on_resume = OnResume::free}),
          {1, 1'000'000}, [](auto& a) -> auto& { return a.run.engine.checkpoints.keep; }),
      count_or_unset_option(
          named("writers", {}, "N", run, "train",
                "number of ranks that write a checkpoint or a large export; default: 4 per node, at most 64",
                {.on_resume = OnResume::free}),
          {}, [](auto& a) -> auto& { return a.run.engine.checkpoints.writers; }),
      enumeration_option(
          named("on-save-error", {}, "WHAT", run, "train",
                "action if a checkpoint cannot be written: stop or continue; earlier checkpoints are kept",
                {.on_resume = OnResume::free}),
          {{"stop", {}}, {"continue", {}}}, [](auto& a) -> auto& { return a.run.engine.checkpoints.stop_on_error; },
          [](std::string_view name) { return name == "stop"; }, [](bool stop) { return stop ? "stop" : "continue"; }),
      resume_option(),
  };
}

/// Accepts -1, Trainer's default, as unset.
Option steps_option() {
  Option option = count_or_unset_option(
      named("steps", {"max-steps", "max-training-steps"}, "N", length, "train plan",
            "number of training steps; overrides --epochs", {.on_resume = OnResume::longer}),
      {}, [](auto& a) -> auto& { return a.run.engine.steps; });
  option.parse = [parse_number = option.parse](Arguments& arguments, std::string_view text) {
    if (text == "-1") arguments.run.engine.steps = 0;
    return text == "-1" || parse_number(arguments, text);
  };
  return option;
}

std::vector<Option> length_options() {
  return {
      real_option(
          named("epochs", {"num-train-epochs"}, "N", length, "train plan", "number of passes over the training data",
                {.on_resume = OnResume::longer}),
          {0, 100'000, true}, [](auto& a) -> auto& { return a.run.engine.epochs; }),
      steps_option(),
      count_option(
          with_help(named("batch", {}, "N", batches, "train plan bench/step bench/batch generate",
                          "batch size: sequences or images per step on all ranks together",
                          {.lays_out = true, .excludes = "batch-per-rank"}),
                    {{"generate", "number of prompts that are continued together"}}),
          sequences, [](auto& a) -> auto& { return a.run.task.batch; }),
      count_option(
          named("batch-per-rank", {"per-device-train-batch-size"}, "N", batches, "train plan",
                "batch size per rank; excludes --batch", {.lays_out = true}),
          sequences, [](auto& a) -> auto& { return a.batch_per_rank; }),
      unrecorded(count_option(
          named("batch-size-per-device", {}, "N", batches, "train plan",
                "micro-batch size; the batch is N x --gradient-accumulation-steps [1] x ranks",
                {.lays_out = true, .excludes = "batch batch-per-rank micro-batch micro-tokens"}),
          sequences, [](auto& a) -> auto& { return a.batch_size_per_device; })),
      count_or_unset_option(
          named("micro-batch", {}, "N", batches, "train plan bench/step",
                "micro-batch size: sequences per forward and backward pass; gradients accumulate; default: the most "
                "that fit in memory",
                {.on_resume = OnResume::free, .lays_out = true, .excludes = "gradient-accumulation-steps"}),
          sequences, [](auto& a) -> auto& { return a.run.engine.micro_batch; }),
      count_or_unset_option(
          named("micro-tokens", {}, "N", batches, "train plan bench/step",
                "largest micro-batch in tokens; it holds whole sequences; excludes --micro-batch",
                {.on_resume = OnResume::free, .lays_out = true, .excludes = "gradient-accumulation-steps micro-batch"}),
          {}, [](auto& a) -> auto& { return a.run.engine.micro_tokens; }),
      count_or_unset_option(
          named("gradient-accumulation-steps", {}, "N", batches, "train plan",
                "number of micro-batches per step and rank; excludes --micro-batch",
                {.on_resume = OnResume::free, .lays_out = true}),
          sequences, [](auto& a) -> auto& { return a.run.engine.accumulation; }),
  };
}

/// Ascending steps. run.json stores them as typed, because a key of --config cannot be a list.
Option decay_steps_option() {
  Option option = named("decay-steps", {}, "N,N,...", optimizer, "train",
                        "steps at which the learning rate is multiplied by --decay-factor; needs --schedule step",
                        {.needs = {"schedule", "step"}});
  option.expects = "whole numbers from 1 on, ascending and separated by commas";
  option.copy = [](Arguments& target, const Arguments& source) {
    target.run.engine.decay_steps = source.run.engine.decay_steps;
  };
  option.parse = [](Arguments& arguments, std::string_view text) {
    std::vector<std::size_t> steps;
    for (const std::string& word : split(text, ',')) {
      const auto step = parse_count(word, {});
      if (!step || (!steps.empty() && *step <= steps.back())) return false;
      steps.push_back(*step);
    }
    arguments.run.engine.decay_steps = std::move(steps);
    return true;
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const std::vector<std::size_t>& steps = arguments.run.engine.decay_steps;
    if (steps.empty()) return nullptr;
    return fmt::format("{}", fmt::join(steps, ","));
  };
  return option;
}

Option freeze_option() {
  Option option = named("freeze", {}, "PATTERNS", optimizer, "train plan",
                        "tensors that keep their values, separated by commas: embeddings, layers.0-5, body, head, or a "
                        "glob of tensor names; nothing is computed, kept or exchanged for them",
                        {.lays_out = true});
  option.expects = "patterns separated by commas";
  option.parse = [](Arguments& arguments, std::string_view text) {
    std::vector<std::string> patterns = split(text, ',');
    if (std::ranges::any_of(patterns, &std::string::empty)) return false;
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

std::vector<Option> schedule_options() {
  return {
      real_option(
          named("learning-rate", {"lr"}, "X", optimizer, "train", "peak learning rate"), {0, unbounded},
          [](auto& a) -> auto& { return a.run.engine.learning_rate; }),
      real_option(
          named("learning-rate-min", {}, "X", optimizer, "train",
                "lower bound of the learning rate after warm-up; linear and cosine end there"),
          {0, unbounded}, [](auto& a) -> auto& { return a.run.engine.learning_rate_min; }),
      enumeration_option(
          named("schedule", {"lr-scheduler-type"}, "NAME", optimizer, "train",
                "learning rate schedule after warm-up: linear, constant, cosine or step"),
          {{"linear", {}}, {"constant", {"constant_with_warmup"}}, {"cosine", {}}, {"step", {}}},
          [](auto& a) -> auto& { return a.run.engine.schedule; }, nn::parse_schedule,
          [](nn::ScheduleKind kind) { return nn::to_string(kind); }),
      freeze_option(),
      decay_steps_option(),
      real_option(
          named("decay-factor", {}, "X", optimizer, "train",
                "factor applied to the learning rate at each of --decay-steps", {.needs = {"schedule", "step"}}),
          {0, unbounded, true}, [](auto& a) -> auto& { return a.run.engine.decay_factor; }),
      real_option(
          named("warmup", {"warmup-ratio"}, "R", optimizer, "train",
                "fraction of the steps in which the learning rate rises from 0"),
          {0, 1}, [](auto& a) -> auto& { return a.run.engine.warmup_ratio; }),
      count_option(
          named("warmup-steps", {}, "N", optimizer, "train", "warm-up in steps; overrides --warmup unless it is 0"),
          {0}, [](auto& a) -> auto& { return a.run.engine.warmup_steps; }),
  };
}

/// Returns an option for a field of AdamW that also sets the field of SGD.
Option of_both_optimizers(Option option) {
  option.parse = [parse_adamw = std::move(option.parse)](Arguments& arguments, std::string_view text) {
    if (!parse_adamw(arguments, text)) return false;
    train::OptimizerConfig& config = arguments.run.engine.optimizer;
    config.sgd.weight_decay = config.adamw.weight_decay;
    config.sgd.decay_all = config.adamw.decay_all;
    return true;
  };
  return option;
}

std::vector<Option> optimizer_options() {
  return {
      enumeration_option(
          named("optimizer", {"optim"}, "NAME", optimizer, "train", "adamw, or sgd with --momentum"),
          {{"adamw", {"adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused"}}, {"sgd", {}}},
          [](auto& a) -> auto& { return a.run.engine.optimizer.kind; },
          [](std::string_view name) { return name == "sgd" ? train::OptimizerKind::sgd : train::OptimizerKind::adamw; },
          [](train::OptimizerKind kind) { return train::to_string(kind); }),
      of_both_optimizers(real_option(
          named(
              "weight-decay", {}, "X", optimizer, "train",
              "weight decay: decoupled with AdamW, added to the gradient with SGD; not applied to biases and LayerNorm "
              "without --decay-all"),
          {0, unbounded}, [](auto& a) -> auto& { return a.run.engine.optimizer.adamw.weight_decay; })),
      of_both_optimizers(switch_option(
          named("decay-all", {}, "", optimizer, "train",
                "apply weight decay to biases and one-dimensional tensors too"),
          [](auto& a) -> auto& { return a.run.engine.optimizer.adamw.decay_all; })),
      real_option(
          named("momentum", {}, "X", optimizer, "train", "momentum of SGD; needs --optimizer sgd",
                {.needs = {"optimizer", "sgd"}}),
          {0, 1, false, true}, [](auto& a) -> auto& { return a.run.engine.optimizer.sgd.momentum; }),
      switch_option(
          named("nesterov", {}, "", optimizer, "train", "SGD with Nesterov momentum; needs --optimizer sgd",
                {.needs = {"optimizer", "sgd"}}),
          [](auto& a) -> auto& { return a.run.engine.optimizer.sgd.nesterov; }),
      real_option(
          named("adam-beta1", {}, "X", optimizer, "train", "decay rate of the mean of gradients",
                {.needs = {"optimizer", "adamw"}}),
          {0, 1, false, true}, [](auto& a) -> auto& { return a.run.engine.optimizer.adamw.beta1; }),
      real_option(
          named("adam-beta2", {}, "X", optimizer, "train", "decay rate of the mean of squared gradients",
                {.needs = {"optimizer", "adamw"}}),
          {0, 1, false, true}, [](auto& a) -> auto& { return a.run.engine.optimizer.adamw.beta2; }),
      real_option(
          named("adam-epsilon", {}, "X", optimizer, "train",
                "term added to the denominator of the update, for numerical stability",
                {.needs = {"optimizer", "adamw"}}),
          {0, unbounded, true}, [](auto& a) -> auto& { return a.run.engine.optimizer.adamw.epsilon; }),
      real_option(
          named("clip", {"max-grad-norm"}, "X", optimizer, "train",
                "largest global norm of gradients; 0 disables clipping"),
          {0, unbounded}, [](auto& a) -> auto& { return a.run.engine.clip; }),
      real_option(
          named("dropout", {}, "P", optimizer, "train plan", "dropout probability; default: the model's"),
          {0, 1, false, true}, [](auto& a) -> auto& { return a.run.task.dropout; }),
      count_option(
          with_help(
              named("seed", {}, "N", optimizer, "train generate", "random seed for shuffling, dropout and a new head"),
              {{"generate", "random seed for sampling"}}),
          {0, std::numeric_limits<std::uint64_t>::max()}, [](auto& a) -> auto& { return a.run.engine.seed; }),
  };
}

std::vector<Option> run_options() {
  return {
      precision_option(),
      export_precision_option(),
      meaning_option(named("bf16", {}, "", computing, "train", "the same as --precision bfloat16", {.lays_out = true}),
                     {"precision", "bfloat16"}),
      meaning_option(named("fp16", {}, "", computing, "train", "the same as --precision half", {.lays_out = true}),
                     {"precision", "half"}),
      loss_scale_option(),
      gemm_option(),
      attention_option(),
      tf32_option(),
      recompute_option(),
      unrecorded(path_option(
          named("config", {}, "FILE", run, "train",
                "run.json to take settings from; options on the command line override it"),
          [](auto& a) -> auto& { return a.train.config; })),
      recipe_option(),
      unrecorded(switch_option(
          with_help(named("overwrite", {"overwrite-output-dir"}, "", run, "train eval prepare report sweep",
                          "start over in an output directory that contains a run"),
                    {{"eval prepare report", "replace files that mylos did not write"},
                     {"sweep", "write the job script anew, without lines that were added to it"}}),
          [](auto& a) -> auto& { return a.overwrite; })),
      unrecorded(switch_option(
          named("extend", {}, "", run, "train",
                "continue a finished run from its last checkpoint, with larger --steps or --epochs",
                {.excludes = "overwrite"}),
          [](auto& a) -> auto& { return a.train.extend; })),
      path_option(
          named(
              "gpu-log", {}, "FILE.csv", run, "train",
              "append the GPUs' utilization and memory to FILE.csv every 5 s (more than 16 nodes: less often), in the "
              "columns of nvidia-smi; of several nodes, each writes FILE-NODE.csv",
              {.on_resume = OnResume::free}),
          [](auto& a) -> auto& { return a.train.gpu_log; }),
      unrecorded(switch_option(
          named("profile", {}, "", run, "train",
                "print at the end how often and how long the run did what: steps with their parts, evaluations, "
                "checkpoints"),
          [](auto& a) -> auto& { return a.train.profile; })),
      unrecorded(switch_option(
          named("dry-run", {}, "", run, "train", "print the settings of the run and the memory it needs, and exit"),
          [](auto& a) -> auto& { return a.train.dry_run; })),
  };
}

}  // namespace

std::vector<Option> training_options(const tasks::TaskKind& task) {
  std::vector<Option> all;
  for (std::vector<Option> part : {length_options(), schedule_options(), optimizer_options(), evaluation_options(task),
                                   run_options(), checkpoint_options()}) {
    std::ranges::move(part, std::back_inserter(all));
  }
  return all;
}

}  // namespace mylos::app
