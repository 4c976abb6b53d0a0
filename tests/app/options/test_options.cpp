#include "app/options/options.hpp"

#include "app/options/commands.hpp"
#include "app/options/parse.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/attention.hpp"
#include "core/kernels/gemm.hpp"
#include "parallel/launch/launch.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace mylos::app {
namespace {

using nlohmann::ordered_json;

/// A value that is not the default, and its form in run.json.
struct Example {
  std::string typed;
  ordered_json recorded;
};

/// Returns an example for each train option that is a setting. A new option without an example fails the test.
const std::map<std::string, Example>& examples() {
  static const std::map<std::string, Example> all = {
      {"model", {"bert-base-uncased", "bert-base-uncased"}},
      {"task", {"question-answering", "question-answering"}},
      {"train", {"/data/train.json", "/data/train.json"}},
      {"dev", {"/data/dev.json", "/data/dev.json"}},
      {"output", {"/runs/a", "/runs/a"}},
      {"squad", {"v2", "2.0"}},
      {"head", {"/data/../head.safetensors", "/head.safetensors"}},
      {"order", {"/order.jsonl", "/order.jsonl"}},
      {"train-limit", {"7", 7}},
      {"dev-limit", {"8", 8}},
      {"strict", {"true", true}},
      {"max-length", {"200", 200}},
      {"doc-stride", {"64", 64}},
      {"exact-labels", {"True", true}},
      {"epochs", {"1.5", 1.5}},
      {"steps", {"100", 100}},
      {"batch", {"32", 32}},
      {"micro-batch", {"4", 4}},
      {"micro-tokens", {"4096", 4096}},
      {"gradient-accumulation-steps", {"3", 3}},
      {"learning-rate", {"1e-4", 1e-4}},
      {"learning-rate-min", {"1e-5", 1e-5}},
      {"schedule", {"cosine", "cosine"}},
      {"warmup", {"0.1", 0.1}},
      {"warmup-steps", {"40", 40}},
      {"optimizer", {"sgd", "sgd"}},
      {"weight-decay", {"0.01", 0.01}},
      {"decay-all", {"true", true}},
      {"adam-beta1", {"0.8", 0.8}},
      {"adam-beta2", {"0.99", 0.99}},
      {"adam-epsilon", {"1e-6", 1e-6}},
      {"clip", {"0", 0.0}},
      {"dropout", {"0", 0.0}},
      {"seed", {"18446744073709551615", UINT64_MAX}},
      {"eval-every", {"50", 50}},
      {"eval-on-start", {"true", true}},
      {"best-by", {"f1", "f1"}},
      {"patience", {"3", 3}},
      {"checkpoint-every", {"10m", "600s"}},
      {"keep", {"5", 5}},
      {"writers", {"8", 8}},
      {"on-save-error", {"continue", "continue"}},
      {"precision", {"bf16-mixed", "bfloat16"}},
      {"export-precision", {"fp16", "half"}},
      {"gemm", {"kokkos-kernels", "kokkos-kernels"}},
      {"recompute", {"attention", "attention"}},
      {"mode", {"ddp", "replicated"}},
      {"shard-size", {"4", 4}},
      {"communication-precision", {"bf16", "bfloat16"}},
      {"communicator", {"auto", "auto"}},
      {"bucket-mib", {"32", 32}},
      {"deterministic", {"true", true}},
      {"collective-timeout", {"5m", 300.0}},
      {"n-best", {"10", 10}},
      {"max-answer-length", {"15", 15}},
      {"null-threshold", {"-1.5", -1.5}},
  };
  return all;
}

std::string with_underscores(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

/// Returns the value of `option` in run.json after `words`.
ordered_json recorded(const Option& option, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"--model", "m", "--train", "t", "--dev", "d", "--output", "o"};
  all.insert(all.end(), words.begin(), words.end());
  return option.print(parse_arguments(*find_command("train"), all));
}

TEST(Options, EveryNameSpellingAndFormIsRead) {
  for (const Option& option : option_table()) {
    // One is an alternative to batch and tested with it; six need another option; two need a GPU.
    static const std::set<std::string> elsewhere = {"batch-per-rank", "leaves",      "initial-loss-scale",
                                                    "tf32",           "attention",   "momentum",
                                                    "nesterov",       "decay-steps", "decay-factor"};
    if (!option.belongs_to("train") || !option.print || elsewhere.contains(option.name)) continue;
    ASSERT_TRUE(examples().contains(option.name)) << option.name << " has no example";
    const Example& example = examples().at(option.name);
    std::vector<std::string> names = option.aliases;
    names.push_back(option.name);
    for (const std::string& name : names) {
      for (const std::string& spelling : {name, with_underscores(name)}) {
        SCOPED_TRACE(spelling);
        EXPECT_EQ(recorded(option, {"--" + spelling + "=" + example.typed}), example.recorded);
        const std::vector<std::string> alone = {"--" + spelling}, apart = {"--" + spelling, example.typed};
        EXPECT_EQ(recorded(option, option.is_switch() ? alone : apart), example.recorded);
      }
    }
  }
}

TEST(Options, EvaluationsComeAfterStepsOrEpochs) {
  const Option& option = *find_option("eval-every");
  EXPECT_EQ(recorded(option, {"--eval-every", "10epochs"}), "10epochs");
  EXPECT_EQ(recorded(option, {"--eval-every", "1epoch"}), "1epochs");
  EXPECT_EQ(recorded(option, {"--eval-every", "10epochs", "--eval-every", "7"}), 7);
  for (const char* wrong : {"0epochs", "epochs", "10 epochs", "-1", "1.5epochs"}) {
    EXPECT_THROW(recorded(option, {"--eval-every", wrong}), UsageError) << wrong;
  }
}

TEST(Options, NamesOfATaskAreNoneOfAllTasks) {
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    std::set<std::string> names;
    for (const Option& option : option_table(*task)) {
      EXPECT_TRUE(names.insert(option.name).second) << task->name() << " " << option.name;
      for (const std::string& alias : option.aliases) {
        EXPECT_TRUE(names.insert(alias).second) << task->name() << " " << alias;
      }
    }
  }
}

TEST(Options, NamesAndAliasesAreUnique) {
  std::set<std::string> names;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    for (const std::string& alias : option.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

TEST(Options, EveryOneSaysWhatItDoesAndWhoHasIt) {
  for (const Option& option : option_table()) {
    EXPECT_FALSE(option.commands.empty()) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.expects.empty()) << option.name;
    EXPECT_TRUE(option.parse) << option.name;
  }
}

TEST(Options, FactorsHaveNoUpperBound) {
  for (const char* name : {"learning-rate", "decay-factor", "weight-decay", "adam-epsilon", "clip", "null-threshold"}) {
    Arguments arguments = default_arguments(*find_command("train"), tasks::default_task_kind());
    EXPECT_TRUE(find_option(name)->parse(arguments, "3.2e7")) << name;
  }
}

TEST(Options, WhatIsOutOfRangeIsRefusedWithTheRange) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--batch=0", "--batch 0: expected a whole number from 1 to 1000000"},
      {"--batch=-3", "--batch -3: expected a whole number from 1 to 1000000"},
      {"--batch=12abc", "--batch 12abc: expected a whole number from 1 to 1000000"},
      {"--steps=99999999999999999999", "--steps 99999999999999999999: expected a whole number from 1 to 1000000000"},
      {"--epochs=0", "--epochs 0: expected a number above 0 and at most 100000"},
      {"--lr=nan", "--lr nan: expected a number of at least 0"},
      {"--lr=inf", "--lr inf: expected a number of at least 0"},
      {"--lr=-1e-5", "--lr -1e-5: expected a number of at least 0"},
      {"--lr=1e999", "--lr 1e999: expected a number of at least 0"},
      {"--dropout=1", "--dropout 1: expected a number of at least 0 and below 1"},
      {"--seed=-1", "--seed -1: expected a whole number from 0 to 2^64 - 1"},
      {"--schedule=cubic", "--schedule cubic: expected linear, constant, cosine or step"},
      {"--optimizer=adafactor", "--optimizer adafactor: expected adamw or sgd"},
      {"--momentum=1", "--momentum 1: expected a number of at least 0 and below 1"},
      {"--decay-factor=0", "--decay-factor 0: expected a number above 0"},
      {"--decay-steps=", "--decay-steps \"\": expected whole numbers from 1 on, ascending and separated by commas"},
      {"--decay-steps=0,2", "--decay-steps 0,2: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=3,3", "--decay-steps 3,3: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=5,3", "--decay-steps 5,3: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=3,", "--decay-steps 3,: expected whole numbers from 1 on, ascending"},
      {"--best-by=accuracy", "--best-by accuracy: expected loss, f1 or exact"},
      {"--squad=3", "--squad 3: expected 1.1 or 2.0"},
      {"--precision=fp8", "--precision fp8: expected float, bfloat16 or half"},
      {"--initial-loss-scale=0", "--initial-loss-scale 0: expected a power of two from 1 to 16777216"},
      {"--initial-loss-scale=1000", "--initial-loss-scale 1000: expected a power of two from 1 to 16777216"},
      {"--initial-loss-scale=33554432", "--initial-loss-scale 33554432: expected a power of two from 1 to 16777216"},
      {"--initial-loss-scale=0.5", "--initial-loss-scale 0.5: expected a power of two from 1 to 16777216"},
      {"--initial-loss-scale=dynamic", "--initial-loss-scale dynamic: expected a power of two from 1 to 16777216"},
      {"--mode=zero4", "--mode zero4: expected replicated, sharded-optimizer, sharded-gradients, sharded or hybrid"},
      {"--shard-size=0", "--shard-size 0: expected a whole number from 1 to 1000000000"},
      {"--communication-precision=half", "--communication-precision half: expected float or bfloat16"},
      {"--leaves=12", "--leaves 12: expected a power of two from 1 to 1024"},
      {"--leaves=2048", "--leaves 2048: expected a power of two from 1 to 1024"},
      {"--resume=",
       "--resume \"\": expected auto (as without it: an unfinished run in --output goes on by itself), never, or a "
       "checkpoint or a run's directory"},
      {"--checkpoint-every=0", "--checkpoint-every 0: expected a number of steps, epoch, never, or a duration: "},
      {"--checkpoint-every=1.5", "--checkpoint-every 1.5: expected a number of steps, epoch, never, or a duration"},
      {"--save-strategy=best", "--save-strategy best: expected no, epoch or steps"},
      {"--keep=0", "--keep 0: expected a whole number from 1 to 1000000"},
      {"--on-save-error=retry", "--on-save-error retry: expected stop or continue"},
      {"--overwrite=maybe", "--overwrite maybe: expected nothing, true or false"},
      {"--head=", "--head \"\": expected a path"},
      {"--model=", "--model \"\": expected a directory or a name"},
      {"--gemm=mkl", "--gemm mkl: expected "},
      {"--recompute=everything", "--recompute everything: expected none, attention or layer"},
      {"--recompute=", "--recompute \"\": expected none, attention or layer"},
      {"--gradient-checkpointing=maybe", "--gradient-checkpointing maybe: expected none, attention or layer"},
      {"--bucket-mib=0", "--bucket-mib 0: expected a whole number from 1 to 1024"},
      {"--bucket-mib=big", "--bucket-mib big: expected a whole number from 1 to 1024"},
      {"--communicator=gloo", "--communicator gloo: expected auto, mpi or nccl"},
      {"--micro-tokens=0", "--micro-tokens 0: expected a whole number from 1 to 1000000000"},
  };
  for (const auto& [word, message] : cases) {
    const std::vector<std::string> words = {word};
    const std::string error = tests::error_of([&] { parse_arguments(*find_command("train"), words); });
    EXPECT_TRUE(error.starts_with(message)) << error;
  }
}

TEST(Options, CommunicatorsThatTheBuildHasNotAreRefused) {
  const Option& communicator = *find_option("communicator");
  EXPECT_EQ(tests::error_of([&] { recorded(communicator, {"--communicator=nccl"}); }),
            "--communicator nccl: this build has no NCCL; use auto or mpi");
  if (parallel::has_mpi()) {
    EXPECT_EQ(recorded(communicator, {"--communicator=mpi"}), "mpi");
  } else {
    EXPECT_EQ(tests::error_of([&] { recorded(communicator, {"--communicator=mpi"}); }),
              "--communicator mpi: this build has no MPI; use auto, or build with -DMYLOS_ENABLE_MPI=ON");
  }
}

TEST(Options, ModesHaveThePeersNames) {
  const Option& mode = *find_option("mode");
  for (const auto& [typed, name] : std::map<std::string, std::string>{{"ddp", "replicated"},
                                                                      {"zero1", "sharded-optimizer"},
                                                                      {"deepspeed_stage_1", "sharded-optimizer"},
                                                                      {"zero2", "sharded-gradients"},
                                                                      {"deepspeed", "sharded-gradients"},
                                                                      {"deepspeed_stage_2", "sharded-gradients"},
                                                                      {"zero3", "sharded"},
                                                                      {"fsdp", "sharded"},
                                                                      {"deepspeed_stage_3", "sharded"},
                                                                      {"hsdp", "hybrid"},
                                                                      {"hybrid", "hybrid"}}) {
    EXPECT_EQ(recorded(mode, {"--strategy=" + typed}), name);
  }
  EXPECT_EQ(recorded(mode, {}), nullptr) << "chosen by what fits";
}

TEST(Options, LeavesBelongToDeterministicRuns) {
  const Option& micro_batch_groups = *find_option("leaves");
  EXPECT_EQ(recorded(micro_batch_groups, {"--deterministic", "--leaves=4"}), 4);
  EXPECT_EQ(recorded(micro_batch_groups, {}), 8);
  EXPECT_EQ(tests::error_of([&] { recorded(micro_batch_groups, {"--leaves=4"}); }), "--leaves needs --deterministic");
  for (const char* other : {"--micro-batch", "--micro-tokens", "--gradient-accumulation-steps"}) {
    EXPECT_EQ(
        tests::error_of([&] {
          recorded(micro_batch_groups, {"--deterministic", std::string(other) + "=2"});
        }),
        fmt::format("--deterministic divides every step into 8 micro-batch groups (--leaves); leave out {}", other));
  }
}

TEST(Options, TheOptimizerHasThePeersNames) {
  const Option& optimizer = *find_option("optimizer");
  EXPECT_EQ(recorded(optimizer, {}), "adamw");
  for (const char* name : {"adamw", "adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused"}) {
    EXPECT_EQ(recorded(optimizer, {"--optimizer=sgd", "--optim", name}), "adamw");
  }
}

TEST(Options, SettingsOfSgdAreRecorded) {
  const Option &momentum = *find_option("momentum"), &nesterov = *find_option("nesterov");
  EXPECT_EQ(recorded(momentum, {}), 0.9);
  EXPECT_EQ(recorded(nesterov, {}), false);
  EXPECT_EQ(recorded(momentum, {"--optimizer=sgd"}), 0.9);
  EXPECT_EQ(recorded(momentum, {"--optimizer=sgd", "--momentum=0.5"}), 0.5);
  EXPECT_EQ(recorded(momentum, {"--optim=sgd"}), 0.0) << "as Trainer's";
  EXPECT_EQ(recorded(momentum, {"--optim", "sgd", "--momentum=0.5"}), 0.5);
  EXPECT_EQ(recorded(nesterov, {"--optimizer=sgd", "--nesterov"}), true);
}

TEST(Options, SettingsOfTheStepScheduleAreRecorded) {
  const Option &steps = *find_option("decay-steps"), &factor = *find_option("decay-factor");
  const std::vector<std::string> words = {"--schedule=step", "--decay-steps=10,20", "--decay_factor", "0.5"};
  EXPECT_EQ(recorded(steps, words), "10,20");
  EXPECT_EQ(recorded(factor, words), 0.5);
  EXPECT_EQ(recorded(steps, {}), nullptr);
  EXPECT_EQ(recorded(factor, {}), 0.1);
}

TEST(Options, DecayCountsForBothOptimizers) {
  for (const char* name : {"adamw", "sgd"}) {
    const std::vector<std::string> words = {"--model=m", "--train=t",           "--output=o", "--optimizer",
                                            name,        "--weight-decay=0.25", "--decay-all"};
    const train::OptimizerConfig config = parse_arguments(*find_command("train"), words).run.engine.optimizer;
    EXPECT_EQ(config.adamw.weight_decay, 0.25);
    EXPECT_EQ(config.sgd.weight_decay, 0.25);
    EXPECT_TRUE(config.adamw.decay_all && config.sgd.decay_all);
  }
}

TEST(Options, TheLossScaleBelongsToHalf) {
  const Option &scale = *find_option("initial-loss-scale"), &precision = *find_option("precision");
  EXPECT_EQ(recorded(scale, {}), 65536);
  for (const char* name : {"half", "16-mixed", "fp16", "float16"}) {
    EXPECT_EQ(recorded(precision, {"--precision", name}), "half");
    EXPECT_EQ(recorded(scale, {"--precision", name, "--initial-loss-scale", "1024"}), 1024);
    EXPECT_EQ(recorded(scale, {"--precision", name, "--fp16_init_scale=1"}), 1);
  }
  for (const char* name : {"float", "bfloat16"}) {
    EXPECT_EQ(tests::error_of([&] {
                recorded(scale, {"--precision", name, "--initial-loss-scale", "1024"});
              }),
              "--initial-loss-scale needs --precision half");
  }
}

TEST(Options, TensorCoresAreOfDevicesAnd16Bits) {
  const Option& attention = *find_option("attention");
  EXPECT_EQ(recorded(attention, {}), "auto");
  EXPECT_EQ(recorded(attention, {"--attention", "auto", "--precision", "float"}), "auto");
  EXPECT_EQ(recorded(attention, {"--attention", "portable", "--precision", "half"}), "portable");
  const auto error_of = [&](const char* precision) {
    return tests::error_of([&] { recorded(attention, {"--attention=tensor-cores", "--precision", precision}); });
  };
  const std::string obstacle = attention_obstacle(AttentionKernel::tensor_cores, Precision::bfloat16);
  EXPECT_TRUE(error_of("float").starts_with("--attention tensor-cores: ")) << error_of("float");
  if (!obstacle.empty()) {
    EXPECT_EQ(error_of("bfloat16"), "--attention tensor-cores: " + obstacle + "; leave it out");
    return;
  }
  EXPECT_EQ(recorded(attention, {"--attention=tensor-cores", "--precision", "half"}), "tensor-cores");
}

TEST(Options, AttentionByCudnnIsOf16BitsAndNotDeterministic) {
  using Words = std::vector<std::string>;
  const Option& attention = *find_option("attention");
  const auto error_of = [&](const Words& words) {
    Words all = {"--attention", "cudnn"};
    all.insert(all.end(), words.begin(), words.end());
    return tests::error_of([&] { recorded(attention, all); });
  };
  const std::string obstacle = attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16);
  EXPECT_TRUE(error_of({"--precision", "float"}).starts_with("--attention cudnn: "));
  if (!obstacle.empty()) {
    EXPECT_EQ(error_of({"--precision", "bfloat16"}), "--attention cudnn: " + obstacle + "; leave it out");
    return;
  }
  EXPECT_EQ(recorded(attention, {"--attention=cudnn", "--precision", "half"}), "cudnn");
  EXPECT_EQ(
      error_of({"--precision", "half", "--deterministic"}),
      "--attention cudnn and --deterministic exclude each other: its gradients have other bits in each run; leave "
      "one of them out");
}

TEST(Options, TensorFloatsAreOfFloatOnDevices) {
  const Option& tf32 = *find_option("tf32");
  EXPECT_EQ(recorded(tf32, {}), false);
  EXPECT_EQ(recorded(tf32, {"--tf32=false", "--precision=half"}), false);
  for (const char* name : {"half", "bfloat16"}) {
    EXPECT_EQ(tests::error_of([&] {
                recorded(tf32, {"--tf32", "--precision", name});
              }),
              fmt::format("--tf32 needs --precision float, not {}; leave one of them out", name));
  }
  if (tf32_gemm_provider().empty()) {
    EXPECT_EQ(tests::error_of([&] { recorded(tf32, {"--tf32"}); }),
              "--tf32 needs a GPU, and this build is for the CPU; leave it out, or build with -DMYLOS_ENABLE_CUDA=ON");
    return;
  }
  EXPECT_EQ(recorded(tf32, {"--tf32"}), true);
  EXPECT_EQ(recorded(tf32, {"--tf32", "--gemm", default_gemm_provider()}), true);
  EXPECT_EQ(tests::error_of([&] {
              recorded(tf32, {"--tf32", "--gemm=kokkos-kernels"});
            }),
            fmt::format("--tf32 and --gemm kokkos-kernels exclude each other: only {} computes in TF32; leave one of "
                        "them out",
                        default_gemm_provider()));
}

TEST(Options, WhatRoundsFloatsIsNoProviderToName) {
  const Option& gemm = *find_option("gemm");
  for (const std::string& name : gemm_providers()) {
    if (name == tf32_gemm_provider()) {
      EXPECT_ANY_THROW(recorded(gemm, {"--gemm", name}));
    } else {
      EXPECT_EQ(recorded(gemm, {"--gemm", name}), name);
    }
  }
}

TEST(Options, CheckpointsAreCountedInStepsOrTime) {
  const auto every = [](const std::string& text) {
    const std::vector<std::string> words = {"--model=m", "--train=t", "--output=o", "--checkpoint-every", text};
    return parse_arguments(*find_command("train"), words);
  };
  EXPECT_EQ(every("500").run.engine.checkpoints.every_steps, 500u);
  EXPECT_EQ(every("500").run.engine.checkpoints.every_seconds, 0.0);
  EXPECT_EQ(every("10m").run.engine.checkpoints.every_seconds, 600.0);
  EXPECT_EQ(every("10m").run.engine.checkpoints.every_steps, 0u);
  EXPECT_EQ(every("1:30:00").run.engine.checkpoints.every_seconds, 5400.0);
  EXPECT_EQ(find_option("checkpoint-every")->print(every("10m")), "600s");
  EXPECT_EQ(find_option("checkpoint-every")->print(every("7")), 7);
  EXPECT_EQ(find_option("checkpoint-every")->print(Arguments()), "600s");
  for (const std::string word : {"epoch", "never"}) {
    EXPECT_EQ(find_option("checkpoint-every")->print(every(word)), word);
    EXPECT_EQ(every(word).run.engine.checkpoints.regular(), word == "epoch");
  }
  EXPECT_EQ(find_option("save-total-limit")->name, "keep");
}

TEST(Options, TrainersSaveStrategyIsObeyed) {
  const auto reported = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--model=m", "--train=t", "--output=o"});
    return parse_arguments(*find_command("train"), words);
  };
  const auto every = [&](const std::vector<std::string>& words) {
    return find_option("checkpoint-every")->print(reported(words));
  };
  EXPECT_EQ(every({"--save_strategy", "steps"}), 500) << "Trainer's default";
  EXPECT_EQ(every({"--save_strategy", "steps", "--save_steps", "7"}), 7);
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "c.json", R"({"save_steps": 9})");
  EXPECT_EQ(every({"--config", directory / "c.json", "--save_strategy", "steps"}), 9) << "the file's save_steps";
  EXPECT_EQ(every({"--save_strategy", "epoch"}), "epoch");
  const Arguments none = reported({"--save_strategy", "no", "--save_steps", "7"});
  EXPECT_FALSE(none.run.engine.checkpoints.regular());
  ASSERT_EQ(none.remarks.size(), 1u);
  EXPECT_EQ(none.remarks[0], "--save-steps 7 has no effect with --save-strategy no");
  EXPECT_EQ(tests::error_of([&] {
              every({"--save_strategy", "epoch", "--checkpoint-every", "5m"});
            }),
            "--save-strategy and --checkpoint-every exclude each other; give one of them");
}

TEST(Options, AnExtensionGoesOnFromTheRunsOwnCheckpoint) {
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--model=m", "--train=t", "--output=o", "--extend"});
    return tests::error_of([&] { parse_arguments(*find_command("train"), words); });
  };
  EXPECT_EQ(error({"--overwrite"}), "--extend and --overwrite exclude each other; give one of them");
  EXPECT_EQ(error({"--resume", "never"}),
            "--extend and --resume never exclude each other: --extend continues from the last checkpoint in --output; "
            "leave one of them out");
}

TEST(Options, GradientCheckpointingIsTakenAsThePeersWriteIt) {
  const Option& recompute = *find_option("recompute");
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "none"},
      {{"--gradient-checkpointing"}, "layer"},
      {{"--gradient_checkpointing", "--seed", "1"}, "layer"},
      {{"--gradient-checkpointing", "True"}, "layer"},
      {{"--gradient-checkpointing=true"}, "layer"},
      {{"--gradient-checkpointing", "false"}, "none"},
      {{"--recompute", "selective"}, "attention"},
      {{"--recompute", "full"}, "layer"},
      {{"--recompute"}, "layer"},
  };
  for (const auto& [words, expected] : cases) EXPECT_EQ(recorded(recompute, words), expected);
}

TEST(Options, ProvidersAreAListOfThisBuilds) {
  const Command& bench = *find_command("bench");
  const std::vector<std::string> words = {"gemm", "--providers=kokkos-kernels,kokkos-kernels"};
  EXPECT_EQ(parse_arguments(bench, words).bench.providers.size(), 2u);
  for (const std::string wrong : {"", "mkl", "kokkos-kernels,", ",kokkos-kernels"}) {
    const std::vector<std::string> bad = {"gemm", "--providers=" + wrong};
    const std::string error = tests::error_of([&] { parse_arguments(bench, bad); });
    EXPECT_NE(error.find("expected a list, separated by commas, of kokkos-kernels"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace mylos::app
