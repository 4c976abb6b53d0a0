#include "app/options/options.hpp"

#include "app/options/commands.hpp"
#include "app/options/parse.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/tool_options.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/attention/attention.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "parallel/launch/launch.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

using nlohmann::ordered_json;
using Words = std::vector<std::string>;

/// Parses the options of train that have no default, and `words`.
Arguments parse_train_with(const Words& words) {
  Words all = {"--model", "m", "--train", "t", "--dev", "d", "--output", "o"};
  all.insert(all.end(), words.begin(), words.end());
  return parse_arguments(FileReader(), *find_command("train"), all);
}

std::string error_of_words(const Words& words) {
  return tests::error_of([&] { parse_train_with(words); });
}

/// Returns the value of this option in run.json after `words`.
ordered_json recorded(const char* name, const Words& words) {
  return find_option(name)->print(parse_train_with(words));
}

/// Tests names of other programs and options that need another one, which tests/golden/command_lines.txt lacks.
TEST(Options, ValuesAreRecordedInTheirOwnNames) {
  struct Case {
    const char* name;
    Words words;
    ordered_json recorded;
  };
  const std::vector<Case> cases = {
      {"squad", {"--squad", "v2"}, "2.0"},
      {"head", {"--head", "/data/../head.safetensors"}, "/head.safetensors"},
      {"seed", {"--seed", "18446744073709551615"}, UINT64_MAX},
      {"precision", {"--precision", "bf16-mixed"}, "bfloat16"},
      {"export-precision", {"--export-precision", "fp16"}, "half"},
      {"communication-precision", {"--communication_precision", "bf16"}, "bfloat16"},
      {"gemm", {"--gemm", "kokkos-kernels"}, "kokkos-kernels"},
      {"communicator", {"--communicator", "auto"}, "auto"},
      {"collective-timeout", {"--collective-timeout", "5m"}, 300.0},
      {"eval-every", {"--eval-every", "10epochs"}, "10epochs"},
      {"eval-every", {"--eval-every", "1epoch"}, "1epochs"},
      {"eval-every", {"--eval-every", "10epochs", "--eval-every", "7"}, 7},
      {"best-by", {"--metric_for_best_model", "eval_exact_match"}, "exact"},
      {"checkpoint-every", {"--checkpoint-every", "1:30:00"}, "5400s"},
      {"mode", {}, nullptr},
      {"mode", {"--strategy=ddp"}, "replicated"},
      {"mode", {"--strategy=zero1"}, "sharded-optimizer"},
      {"mode", {"--strategy=deepspeed_stage_1"}, "sharded-optimizer"},
      {"mode", {"--strategy=zero2"}, "sharded-gradients"},
      {"mode", {"--strategy=deepspeed"}, "sharded-gradients"},
      {"mode", {"--strategy=deepspeed_stage_2"}, "sharded-gradients"},
      {"mode", {"--strategy=zero3"}, "sharded"},
      {"mode", {"--strategy=fsdp"}, "sharded"},
      {"mode", {"--strategy=deepspeed_stage_3"}, "sharded"},
      {"mode", {"--strategy=hsdp"}, "hybrid"},
      {"optimizer", {}, "adamw"},
      {"optimizer", {"--optimizer=sgd", "--optim", "adamw_torch"}, "adamw"},
      {"optimizer", {"--optimizer=sgd", "--optim", "adamw_torch_fused"}, "adamw"},
      {"optimizer", {"--optimizer=sgd", "--optim", "adamw_hf"}, "adamw"},
      {"optimizer", {"--optimizer=sgd", "--optim", "adamw_apex_fused"}, "adamw"},
      {"momentum", {"--optimizer=sgd"}, 0.9},
      {"momentum", {"--optimizer=sgd", "--momentum=0.5"}, 0.5},
      {"momentum", {"--optim=sgd"}, 0.0},  // as Trainer's
      {"momentum", {"--optim", "sgd", "--momentum=0.5"}, 0.5},
      {"nesterov", {"--optimizer=sgd", "--nesterov"}, true},
      {"decay-steps", {"--schedule=step", "--decay-steps=10,20", "--decay_factor", "0.5"}, "10,20"},
      {"decay-factor", {"--schedule=step", "--decay-steps=10,20", "--decay_factor", "0.5"}, 0.5},
      {"decay-factor", {}, 0.1},
      {"decay-fraction", {"--schedule=wsd", "--decay-fraction=0.25"}, 0.25},
      {"decay-fraction", {}, 0.1},
      {"decay-power", {"--schedule=polynomial", "--decay-power", "2"}, 2},
      {"decay-power", {}, 1},
      {"leaves", {"--deterministic", "--leaves=4"}, 4},
      {"leaves", {}, 8},
      {"precision", {"--precision", "16-mixed"}, "half"},
      {"precision", {"--precision", "float16"}, "half"},
      {"initial-loss-scale", {}, 65536},
      {"initial-loss-scale", {"--precision", "fp16", "--initial-loss-scale", "1024"}, 1024},
      {"initial-loss-scale", {"--precision", "half", "--fp16_init_scale=1"}, 1},
      {"recompute", {"--gradient_checkpointing", "--seed", "1"}, "layer"},
      {"recompute", {"--gradient-checkpointing", "false"}, "none"},
      {"recompute", {"--recompute", "selective"}, "attention"},
      {"recompute", {"--recompute", "full"}, "layer"},
      {"attention", {"--attention", "auto", "--precision", "float"}, "auto"},
      {"attention", {"--attention", "portable", "--precision", "half"}, "portable"},
      {"tf32", {"--tf32=false", "--precision=half"}, false},
  };
  for (const Case& each : cases) EXPECT_EQ(recorded(each.name, each.words), each.recorded) << each.name;
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

TEST(Options, EveryOneSaysWhatItDoesAndWhoHasIt) {
  for (const Option& option : option_table()) {
    const bool is_of_peers = std::ranges::any_of(
        peer_options(), [&](const PeerOption& peer) { return peer.name == option.name && !peer.option.empty(); });
    EXPECT_FALSE(option.commands.empty()) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.expects.empty()) << option.name;
    EXPECT_NE(static_cast<bool>(option.parse), is_of_peers) << option.name;
  }
}

/// A value of each kind that is wrong. The recorded command lines hold those of the other options.
TEST(Options, WhatIsWrongIsRefusedWithWhatIsExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--batch=12abc", "--batch 12abc: expected a whole number from 1 to 1000000"},
      {"--steps=99999999999999999999", "--steps 99999999999999999999: expected a whole number from 1 to 1000000000"},
      {"--epochs=0", "--epochs 0: expected a number above 0 and at most 100000"},
      {"--lr=nan", "--lr nan: expected a number of at least 0"},
      {"--dropout=1", "--dropout 1: expected a number of at least 0 and below 1"},
      {"--seed=-1", "--seed -1: expected a whole number from 0 to 2^64 - 1"},
      {"--schedule=cubic",
       "--schedule cubic: expected linear, constant, cosine, step, warmup-stable-decay or polynomial"},
      {"--decay-steps=0,2", "--decay-steps 0,2: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=3,3", "--decay-steps 3,3: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=5,3", "--decay-steps 5,3: expected whole numbers from 1 on, ascending"},
      {"--decay-steps=3,", "--decay-steps 3,: expected whole numbers from 1 on, ascending"},
      {"--initial-loss-scale=1000", "--initial-loss-scale 1000: expected a power of two from 1 to 16777216"},
      {"--initial-loss-scale=33554432", "--initial-loss-scale 33554432: expected a power of two from 1 to 16777216"},
      {"--leaves=12", "--leaves 12: expected a power of two from 1 to 1024"},
      {"--leaves=2048", "--leaves 2048: expected a power of two from 1 to 1024"},
      {"--resume=",
       "--resume \"\": expected auto (as without it: an unfinished run in --output goes on by itself), never, or a "
       "checkpoint or a run's directory"},
      {"--checkpoint-every=0", "--checkpoint-every 0: expected a number of steps, epoch, never, or a duration: "},
      {"--eval-every=0epochs", "--eval-every 0epochs: expected "},
      {"--eval-every=epochs", "--eval-every epochs: expected "},
      {"--eval-every=10 epochs", "--eval-every 10 epochs: expected "},
      {"--eval-every=1.5epochs", "--eval-every 1.5epochs: expected "},
      {"--save-strategy=best", "--save-strategy best: expected no, epoch or steps"},
      {"--overwrite=maybe", "--overwrite maybe: expected nothing, true or false"},
      {"--head=", "--head \"\": expected a path"},
      {"--gemm=mkl", "--gemm mkl: expected "},
      {"--gradient-checkpointing=maybe", "--gradient-checkpointing maybe: expected none, attention or layer"},
      {"--communicator=gloo", "--communicator gloo: expected auto, mpi or nccl"},
      {"--leaves=4", "--leaves needs --deterministic"},
      {"--initial-loss-scale=1024", "--initial-loss-scale needs --precision half"},
  };
  for (const auto& [word, message] : cases) {
    EXPECT_TRUE(error_of_words({word}).starts_with(message)) << error_of_words({word});
  }
  for (const char* other : {"--micro-batch", "--micro-tokens", "--gradient-accumulation-steps"}) {
    EXPECT_EQ(
        error_of_words({"--deterministic", std::string(other) + "=2"}),
        fmt::format("--deterministic divides every step into 8 micro-batch groups (--leaves); leave out {}", other));
  }
}

TEST(Options, CommunicatorsThatTheBuildHasNotAreRefused) {
  EXPECT_EQ(error_of_words({"--communicator=nccl"}), "--communicator nccl: this build has no NCCL; use auto or mpi");
  if (parallel::has_mpi()) {
    EXPECT_EQ(recorded("communicator", {"--communicator=mpi"}), "mpi");
  } else {
    EXPECT_EQ(error_of_words({"--communicator=mpi"}),
              "--communicator mpi: this build has no MPI; use auto, or build with -DMYLOS_ENABLE_MPI=ON");
  }
}

/// On tensor cores and by cuDNN.
TEST(Options, AttentionOfDevicesIsOf16Bits) {
  for (const AttentionKernel kernel : {AttentionKernel::tensor_cores, AttentionKernel::cudnn}) {
    const std::string name(to_string(kernel)), obstacle = attention_obstacle(kernel, Precision::bfloat16);
    const auto error_with = [&](const char* precision) {
      return error_of_words({"--attention", name, "--precision", precision});
    };
    EXPECT_TRUE(error_with("float").starts_with("--attention " + name + ": ")) << error_with("float");
    if (obstacle.empty()) {
      EXPECT_EQ(recorded("attention", {"--attention", name, "--precision", "half"}), name);
    } else {
      EXPECT_EQ(error_with("bfloat16"), "--attention " + name + ": " + obstacle + "; leave it out");
    }
  }
  if (!attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16).empty()) return;
  EXPECT_EQ(
      error_of_words({"--attention=cudnn", "--precision", "half", "--deterministic"}),
      "--attention cudnn and --deterministic exclude each other: its gradients have other bits in each run; leave "
      "one of them out");
}

TEST(Options, TensorFloatsAreOfFloatOnDevices) {
  EXPECT_EQ(error_of_words({"--tf32", "--precision", "half"}),
            "--tf32 needs --precision float, not half; leave one of them out");
  if (tf32_gemm_provider().empty()) {
    EXPECT_EQ(
        error_of_words({"--tf32"}),
        "--tf32 needs a GPU of NVIDIA, and this build is for none; leave it out, or build with -DMYLOS_ENABLE_CUDA=ON");
    return;
  }
  EXPECT_EQ(recorded("tf32", {"--tf32"}), true);
  EXPECT_EQ(recorded("tf32", {"--tf32", "--gemm", default_gemm_provider()}), true);
  EXPECT_EQ(error_of_words({"--tf32", "--gemm=kokkos-kernels"}),
            fmt::format("--tf32 and --gemm kokkos-kernels exclude each other: only {} computes in TF32; leave one of "
                        "them out",
                        default_gemm_provider()));
}

TEST(Options, WhatRoundsFloatsIsNoProviderToName) {
  for (const std::string& name : gemm_providers()) {
    if (name == tf32_gemm_provider()) {
      EXPECT_ANY_THROW(recorded("gemm", {"--gemm", name}));
    } else {
      EXPECT_EQ(recorded("gemm", {"--gemm", name}), name);
    }
  }
}

TEST(Options, CheckpointsAreCountedInStepsOrTime) {
  const auto every = [](const char* text) {
    return parse_train_with({"--checkpoint-every", text}).run.engine.checkpoints;
  };
  EXPECT_EQ(every("500").every_steps, 500u);
  EXPECT_EQ(every("500").every_seconds, 0.0);
  EXPECT_EQ(every("10m").every_seconds, 600.0);
  EXPECT_EQ(every("10m").every_steps, 0u);
  EXPECT_TRUE(every("epoch").regular());
  EXPECT_FALSE(every("never").regular());
}

TEST(Options, TrainersSaveStrategyIsObeyed) {
  const auto every = [&](const Words& words) { return recorded("checkpoint-every", words); };
  EXPECT_EQ(every({"--save_strategy", "steps"}), 500) << "Trainer's default";
  EXPECT_EQ(every({"--save_strategy", "steps", "--save_steps", "7"}), 7);
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "c.json", R"({"save_steps": 9})");
  EXPECT_EQ(every({"--config", directory / "c.json", "--save_strategy", "steps"}), 9) << "the file's save_steps";
  tests::write_file(directory / "c.json", R"({"save_steps": 9, "save_strategy": "epoch", "optim": "sgd"})");
  EXPECT_EQ(every({"--config", directory / "c.json"}), "epoch");
  EXPECT_EQ(every({"--config", directory / "c.json", "--save_steps", "5"}), 5);
  EXPECT_EQ(recorded("momentum", {"--config", directory / "c.json"}), 0.0) << "a configuration means the same";
  EXPECT_EQ(recorded("momentum", {"--config", directory / "c.json", "--optimizer", "sgd"}), 0.9);
  const Arguments none = parse_train_with({"--save_strategy", "no", "--save_steps", "7"});
  EXPECT_FALSE(none.run.engine.checkpoints.regular());
  EXPECT_EQ(none.remarks, Words{"--save-steps 7 has no effect with --save-strategy no"});
  EXPECT_EQ(error_of_words({"--save_strategy", "epoch", "--checkpoint-every", "5m"}),
            "--save-strategy and --checkpoint-every exclude each other; give one of them");
}

TEST(Options, AnExtensionGoesOnFromTheRunsOwnCheckpoint) {
  EXPECT_EQ(error_of_words({"--extend", "--overwrite"}),
            "--extend and --overwrite exclude each other; give one of them");
  EXPECT_EQ(error_of_words({"--extend", "--resume", "never"}),
            "--extend and --resume never exclude each other: --extend continues from the last checkpoint in --output; "
            "leave one of them out");
}

TEST(Options, ProvidersAreAListOfThisBuilds) {
  const Command& bench = *find_command("bench");
  const Words words = {"gemm", "--providers=kokkos-kernels,kokkos-kernels"};
  EXPECT_EQ(parse_arguments(FileReader(), bench, words).bench->providers.size(), 2u);
  for (const std::string wrong : {"", "mkl", "kokkos-kernels,", ",kokkos-kernels"}) {
    const Words bad = {"gemm", "--providers=" + wrong};
    const std::string error = tests::error_of([&] { parse_arguments(FileReader(), bench, bad); });
    EXPECT_NE(error.find("expected a list, separated by commas, of kokkos-kernels"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace mylos::app
