#include "app/options/peer_options.hpp"

#include "app/options/parse.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <vector>

namespace mylos::app {
namespace {

constexpr std::string_view recorded =
    "every step is recorded in metrics.jsonl and in TensorBoard's file in the output directory";
constexpr std::string_view no_workers = "tokenization uses all threads of a rank, and batches are made without workers";
constexpr std::string_view ranks_by_launcher = "the launcher (srun, mpirun) determines ranks and their GPUs";
constexpr std::string_view no_python = "no Python code runs, and nothing is compiled at run time";
constexpr std::string_view by_eval = "mylos train reads no test file; use mylos eval for the questions of another file";
constexpr std::string_view of_model = "it is read from the directory given by --model";
constexpr std::string_view by_batch = "leave it out: a batch has --batch sequences in an order drawn from --seed";
constexpr std::string_view by_mode = "use --mode (sharded-optimizer, sharded-gradients, sharded, hybrid)";
constexpr std::string_view by_launcher = "leave it out: the launcher (srun, mpirun) determines the ranks, one per GPU";
constexpr std::string_view by_precision = "--precision sets the type of parameters and activations";
constexpr std::string_view by_clip = "use --clip";
constexpr std::string_view by_eval_every = "use --eval-every, in steps; by default an evaluation follows each epoch";
constexpr std::string_view by_bucket = "use --bucket-mib, the communication bucket size";
constexpr std::string_view overlapped = "communication of a unit always overlaps with computation of the next";
constexpr std::string_view no_offload =
    "leave it out: nothing is offloaded; mylos plan shows which sharding strategies fit";
constexpr std::string_view units_are_layers = "the units are the embeddings, each layer and the head";
constexpr std::string_view kept = "the best model (by --best-by) is kept in best/, the last one in last/";
constexpr std::string_view not_quantized = "weights are not quantized";
constexpr std::string_view frozen_bits = "use --precision bfloat16, which keeps frozen weights in 16 bits";

// A build computes on one kind of device.
constexpr std::string_view own_device = runs_on_host ? "" : "false";
constexpr std::string_view of_build = runs_on_host ? "this build computes on the CPU" : "this build computes on GPUs";
constexpr std::string_view other_build = runs_on_host ? "" : "train with a build for the CPU";

/// Trainer's sgd has no momentum.
OptionTexts optimizer_of_trainer(const std::string& name, const PeerSurroundings& around) {
  const PeerSurroundings::Find& beside = around.is_typed ? around.typed : around.configured;
  if (name != "sgd" || beside("momentum")) return {{"optimizer", name}};
  around.remark("--optim sgd: SGD without momentum, as Trainer's; --momentum X gives it one");
  return {{"optimizer", name}, {"momentum", "0"}};
}

/// As in Trainer, save_steps only counts with "steps". Another --checkpoint-every beside it is refused later.
OptionTexts checkpoints_of_trainer(const std::string& strategy, const PeerSurroundings& around) {
  constexpr const char* option = "checkpoint-every";
  const auto in_steps = [](const std::optional<std::string>& every) { return every && parse_count(*every, {}); };
  const auto beside = (around.is_typed ? around.typed : around.configured)(option);
  const bool counts = strategy == "steps";
  if (in_steps(beside) && !counts) {
    around.remark(fmt::format("--save-steps {} has no effect with --save-strategy {}", *beside, strategy));
  }
  const auto every = beside ? beside : around.configured(option);
  if (in_steps(beside)) around.leave_out(option, around.is_typed);
  if (counts) return {{option, in_steps(every) ? *every : "500"}};
  return {{option, strategy == "no" ? "never" : strategy}};
}

/// The size of a micro-batch. A rank's batch has --gradient-accumulation-steps of them.
OptionTexts batch_per_device(const std::string& size, const PeerSurroundings& around) {
  constexpr const char* parts = "gradient-accumulation-steps";
  if (!around.is_typed && (around.typed("batch") || around.typed("batch-per-rank"))) return {};
  const auto typed = around.typed(parts);
  const auto accumulation = parse_count((typed ? typed : around.configured(parts)).value_or(""), {});
  const auto count = parse_count(size, {});
  if (!accumulation || !count) return {{"batch-per-rank", size}, {"micro-batch", size}};
  for (const bool is_typed : {true, false}) around.leave_out(parts, is_typed);
  return {{"batch-per-rank", std::to_string(*count * *accumulation)}, {"micro-batch", size}};
}

constexpr PeerOption with_meaning(PeerOption row, PeerOption::Meaning meaning) {
  row.meaning = meaning;
  return row;
}

constexpr std::array peer_table = {
    // Other names of options of every task.
    peer_alias("model-name-or-path", "model"),
    peer_alias("train-file", "train"),
    peer_alias("validation-file", "dev"),
    peer_alias("output-dir", "output"),
    peer_alias("max-train-samples", "train-limit"),
    peer_alias("max-eval-samples", "dev-limit"),
    peer_alias("num-train-epochs", "epochs"),
    peer_alias("max-steps", "steps"),
    peer_alias("max-training-steps", "steps"),
    peer_alias("per-device-train-batch-size", "batch-per-rank"),
    peer_alias("lr", "learning-rate"),
    peer_alias("lr-scheduler-type", "schedule"),
    peer_alias("warmup-ratio", "warmup"),
    peer_alias("max-grad-norm", "clip"),
    peer_alias("eval-steps", "eval-every"),
    peer_alias("metric-for-best-model", "best-by"),
    peer_alias("save-top-k", "keep-best"),
    peer_alias("fp16-init-scale", "initial-loss-scale"),
    peer_alias("gradient-checkpointing", "recompute"),
    peer_alias("overwrite-output-dir", "overwrite"),
    peer_alias("save-steps", "checkpoint-every"),
    peer_alias("save-total-limit", "keep"),
    peer_alias("resume-from-checkpoint", "resume"),
    peer_alias("strategy", "mode"),
    peer_alias("ddp-timeout", "collective-timeout"),
    with_meaning(peer_alias("optim", "optimizer"), optimizer_of_trainer),
    // Settings of ours by another name.
    peer_switch("bf16", "precision", "bfloat16", "train"),
    peer_switch("fp16", "precision", "half", "train"),
    peer_switch("no-fsdp", "mode", "replicated", "train plan"),
    peer_switch("no-fsdp", "modes", "replicated", "compare"),
    peer_switch("no-fsdp", "modes", "replicated", "bench/batch"),
    PeerOption{.name = "batch-size-per-device",
               .option = "batch-per-rank",
               .commands = "train plan",
               .placeholder = "N",
               .help = "micro-batch size; the batch is N x --gradient-accumulation-steps [1] x ranks",
               .meaning = batch_per_device},
    PeerOption{.name = "save-strategy",
               .values = "no,epoch,steps",
               .option = "checkpoint-every",
               .commands = "train",
               .placeholder = "NAME",
               .help = "Trainer's name for --checkpoint-every: steps (as many as that option says, else 500), epoch, "
                       "or no (never)",
               .meaning = checkpoints_of_trainer},
    // Logging.
    PeerOption{"report-to", false, "", recorded},
    PeerOption{"logging-dir", false, "", recorded},
    PeerOption{"logging-steps", false, "", recorded},
    PeerOption{"logging-strategy", false, "", recorded},
    PeerOption{"logging-first-step", true, "", recorded},
    PeerOption{"run-name", false, "", recorded},
    PeerOption{"log-level", false, "", recorded},
    PeerOption{"logging-nan-inf-filter", true, "", recorded},
    PeerOption{"disable-tqdm", true, "", "progress is drawn only in a terminal"},
    PeerOption{"skip-memory-metrics", true, "", recorded},
    PeerOption{"include-tokens-per-second", true, "", recorded},
    // Reading data.
    PeerOption{"preprocessing-num-workers", false, "", no_workers},
    PeerOption{"dataloader-num-workers", false, "", no_workers},
    PeerOption{"dataloader-pin-memory", true, "", no_workers},
    PeerOption{"dataloader-prefetch-factor", false, "", no_workers},
    PeerOption{"overwrite-cache", true, "", "tokenised data are not cached, except by mylos prepare"},
    PeerOption{"pad-to-max-length", true, "", "sequences are packed without padding"},
    PeerOption{"use-fast-tokenizer", true, "", "there is one tokenizer"},
    PeerOption{"remove-unused-columns", true, "", "only columns that the model reads are kept"},
    PeerOption{"cache-dir", false, "", "models are read from Hugging Face's cache (HF_HOME) or from mylos' own"},
    PeerOption{"model-revision", false, "main", "the revision in refs/main is used",
               "download that revision and give its directory with --model"},
    PeerOption{"token", false, "", "mylos train does not use the network", "", true},
    PeerOption{"use-auth-token", true, "", "mylos train does not use the network", "", true},
    PeerOption{"trust-remote-code", true, "", no_python},
    // Evaluation and saving.
    PeerOption{"per-device-eval-batch-size", false, "",
               "evaluation uses the largest micro-batch that fits, which does not change the answers"},
    PeerOption{"eval-accumulation-steps", false, "", "evaluation keeps answers, not logits"},
    PeerOption{"eval-strategy", false, "", "an evaluation follows every --eval-every steps, by default each epoch"},
    PeerOption{"evaluation-strategy", false, "",
               "an evaluation follows every --eval-every steps, by default each epoch"},
    PeerOption{"load-best-model-at-end", true, "", kept},
    PeerOption{"greater-is-better", true, "", kept},
    PeerOption{"save-safetensors", true, "", "models are written as safetensors"},
    PeerOption{"save-on-each-node", true, "false", "files are written once",
               "use an --output on a file system that all nodes share"},
    PeerOption{"push-to-hub", true, "false", "nothing is uploaded",
               "mylos train does not use the network; upload best/ afterwards"},
    // Devices and communication.
    PeerOption{"local-rank", false, "", ranks_by_launcher},
    PeerOption{"use-cpu", true, own_device, of_build, other_build},
    PeerOption{"no-cuda", true, own_device, of_build, other_build},
    PeerOption{"ddp-backend", false, "", "--communicator selects the library for communication"},
    PeerOption{"ddp-find-unused-parameters", true, "", "every parameter is used in every step"},
    PeerOption{"ddp-bucket-cap-mb", false, "", "--bucket-mib sets the communication bucket size"},
    PeerOption{"torch-compile", true, "", no_python},
    PeerOption{"auto-find-batch-size", true, "", "the largest micro-batch that fits is found before step 1"},
    PeerOption{"gradient-checkpointing-kwargs", false, "", "--recompute has no further settings"},
    PeerOption{"half-precision-backend", false, "", by_precision},
    PeerOption{"fp16-full-eval", true, "", "evaluation uses --precision"},
    PeerOption{"bf16-full-eval", true, "", "evaluation uses --precision"},
    PeerOption{"label-smoothing-factor", false, "0,0.0", "labels are not smoothed",
               "leave it out: labels are not smoothed"},
    PeerOption{"dataloader-drop-last", true, "false", "the last, smaller batch of an epoch is used", by_batch},
    PeerOption{"group-by-length", true, "false", "batches are not sorted by length", by_batch},
    // Options that would change a run.
    PeerOption{"do-predict", true, "false", "mylos train reads no test file", by_eval},
    PeerOption{"max-predict-samples", false, "None", "mylos train reads no test file", by_eval},
    PeerOption{"test-file", false, "None", "mylos train reads no test file", by_eval},
    PeerOption{"config-name", false, "None", of_model, of_model},
    PeerOption{"tokenizer-name", false, "None", of_model, of_model},
    PeerOption{"data-seed", false, "None", "--seed also determines the order of the data",
               "use --seed, which also determines the order of the data"},
    PeerOption{"adafactor", true, "false", "--optimizer selects the optimizer", "use --optimizer adamw or sgd"},
    PeerOption{"neftune-noise-alpha", false, "None", "no noise is added",
               "leave it out: no noise is added to embeddings"},
    PeerOption{"lr-scheduler-kwargs", false, "None,{}", "schedules have separate options",
               "use --learning-rate-min, --decay-steps, --decay-factor, --decay-fraction and --decay-power"},
    PeerOption{"deepspeed", false, "None", by_mode, by_mode},
    PeerOption{"fsdp-config", false, "None", by_mode, by_mode},
    PeerOption{"fsdp", false, "None", by_mode, by_mode},
    // Programs that train with PEFT. Their other options for adapters are names of options of ours.
    PeerOption{"use-peft", true, "", "--lora-rank decides whether adapters are trained"},
    PeerOption{"finetuning-type", false, "lora", "--lora-rank decides whether adapters are trained",
               "leave it out: without --lora-rank and --freeze all weights are trained"},
    PeerOption{"use-dora", true, "false", "adapters have no magnitudes", "leave it out: DoRA is not here"},
    PeerOption{"load-in-4bit", true, "false", not_quantized, frozen_bits},
    PeerOption{"load-in-8bit", true, "false", not_quantized, frozen_bits},
    PeerOption{"quantization-bit", false, "None", not_quantized, frozen_bits},
    // Options of Lightning and PyTorch.
    PeerOption{"max-epochs", false, "", "", "use --epochs"},
    PeerOption{"devices", false, "", "", by_launcher},
    PeerOption{"num-nodes", false, "", "", by_launcher},
    PeerOption{"accelerator", false, "", "", "choose a build for CPUs or for GPUs; mylos info shows which one this is"},
    PeerOption{"batch-size", false, "", "", "use --batch (all ranks together) or --batch-per-rank"},
    PeerOption{"num-workers", false, "", no_workers},
    PeerOption{"accumulate-grad-batches", false, "", "", "use --gradient-accumulation-steps"},
    PeerOption{"gradient-clip-val", false, "", "", by_clip},
    PeerOption{"val-check-interval", false, "", "", by_eval_every},
    PeerOption{"check-val-every-n-epoch", false, "", "", by_eval_every},
    PeerOption{"limit-train-batches", false, "", "", "use --train-limit, which counts entries of the file"},
    PeerOption{"limit-val-batches", false, "", "", "use --dev-limit, which counts entries of the file"},
    PeerOption{"monitor", false, "", "", "use --best-by"},
    PeerOption{"every-n-train-steps", false, "", "", "use --checkpoint-every"},
    PeerOption{"profiler", false, "", "", "use --profile"},
    PeerOption{"max-time", false, "", "", "use --walltime with --stop-before"},
    PeerOption{"auto-requeue", true, "false", "the job script requeues",
               "use the job script requeue.sbatch, which requeues after exit code 85"},
    PeerOption{"ckpt-path", false, "", "", "use --resume"},
    PeerOption{"fast-dev-run", true, "false", "the whole run is trained",
               "use --steps 1, or --dry-run, which trains nothing"},
    PeerOption{"logger", false, "", recorded},
    // Options of DeepSpeed and FSDP.
    PeerOption{"zero-optimization.stage", false, "", "", by_mode},
    PeerOption{"zero-stage", false, "", "", by_mode},
    PeerOption{"sharding-strategy", false, "", "", "use --mode replicated, sharded-gradients, sharded or hybrid"},
    PeerOption{"no-layer-wrap-policy", true, "false", units_are_layers, "leave it out: the units are always layers"},
    PeerOption{"auto-wrap-policy", false, "", units_are_layers},
    PeerOption{"train-batch-size", false, "", "", "use --batch"},
    PeerOption{"train-micro-batch-size-per-gpu", false, "", "", "use --micro-batch"},
    PeerOption{"gradient-clipping", false, "", "", by_clip},
    PeerOption{"bf16.enabled", true, "false", by_precision, "use --precision bfloat16"},
    PeerOption{"fp16.enabled", true, "false", by_precision, "use --precision half"},
    PeerOption{"fp16.initial-scale-power", false, "", "", "use --initial-loss-scale, which is the scale itself"},
    PeerOption{"communication-data-type", false, "", "", "use --communication-precision"},
    PeerOption{"reduce-dtype", false, "", "", "use --communication-precision"},
    PeerOption{"reduce-bucket-size", false, "", "", by_bucket},
    PeerOption{"allgather-bucket-size", false, "", "", by_bucket},
    PeerOption{"activation-checkpointing", false, "", "", "use --recompute"},
    PeerOption{"overlap-comm", true, "", overlapped},
    PeerOption{"limit-all-gathers", true, "", overlapped},
    PeerOption{"offload-optimizer", false, "", "", no_offload},
    PeerOption{"offload-param", false, "", "", no_offload},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool has_no_effect(const PeerOption& option, std::string_view value) {
  if (option.why.empty()) return false;
  if (option.values.empty()) return true;
  const std::vector<std::string> taken = split(option.values, ',');
  return std::ranges::any_of(taken, [&](const std::string& each) { return lower_case(each) == lower_case(value); });
}

/// Returns the value, with that of a switch as true or false.
std::string plain_value(const PeerOption& option, std::string_view shown, std::string_view value) {
  if (!option.is_switch || option.is_secret) return std::string(value);
  const auto truth = parse_truth(value);
  if (!truth) throw UsageError(fmt::format("{} {}: expected nothing, true or false", shown, printable(value)));
  return *truth ? "true" : "false";
}

}  // namespace

std::vector<PeerOption> peer_options(const tasks::TaskKind& task) {
  std::vector<PeerOption> all(peer_table.begin(), peer_table.end());
  const std::span<const PeerOption> own = task.peer_options();
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const PeerOption* find_peer_option(std::string_view name, const Command& command, const tasks::TaskKind& task) {
  const PeerOption* of_other = nullptr;
  for (const std::span<const PeerOption> table : {task.peer_options(), std::span<const PeerOption>(peer_table)}) {
    for (const PeerOption& row : table) {
      if (row.name != name) continue;
      if (row.is_alias()) return row.meaning == nullptr ? nullptr : &row;
      if (row.option.empty()) return command.trains() ? &row : nullptr;
      if (names_command(row.commands, command.name)) return &row;
      if (of_other == nullptr && names_command(row.commands, command.options_of)) of_other = &row;
    }
  }
  return of_other;
}

std::string remark_on(const PeerOption& option, std::string_view shown, std::string_view value) {
  const std::string plain = plain_value(option, shown, value);
  const bool is_told = !plain.empty() && !option.is_secret && !(option.is_switch && plain == "true");
  const std::string configured = is_told ? " " + printable(plain) : "";
  if (has_no_effect(option, plain)) return fmt::format("{}{} has no effect here: {}", shown, configured, option.why);
  throw UsageError(fmt::format("{}{} is not supported; {}", shown, configured, option.instead));
}

std::string suggestion_with_peers(std::string_view typed, std::vector<std::string> names, std::string_view prefix,
                                  const Command& command, const tasks::TaskKind& task) {
  for (const PeerOption& option : peer_options(task)) {
    if (option.option.empty()) names.emplace_back(option.name);
  }
  const std::string nearest = nearest_name(typed, names);
  const PeerOption* peer = find_peer_option(nearest, command, task);
  const bool is_refused = peer != nullptr && peer->option.empty() && peer->why.empty();
  return is_refused ? fmt::format("; {}", peer->instead) : suggestion(typed, names, prefix);
}

}  // namespace mylos::app
