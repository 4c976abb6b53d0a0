#include "app/options/config_file.hpp"

#include "app/options/parse.hpp"
#include "app/options/train_options.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"
#include "core/kernels/products/gemm.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mylos::app {
namespace {

using tests::TemporaryDirectory;

class ConfigFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto path = directory_ / "run.json";
    tests::write_file(path, text);
    return path.string();
  }
  /// Parses a configuration file with `text` and the arguments `words`.
  Arguments parse(const std::string& text, std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"--config", write(text)});
    return parse_arguments(FileReader(), train_, words);
  }
  std::string error(const std::string& text) {
    return tests::error_of([&] { parse(text); });
  }
  /// Parses the options of a command line that needs no configuration, and `words`.
  Arguments parse_words(std::vector<std::string> words = {}) {
    words.insert(words.end(), {"--model=m", "--train=t", "--output=o"});
    return parse_arguments(FileReader(), train_, words);
  }

  TemporaryDirectory directory_;
  const Command& train_ = *find_command("train");
  const std::string base_ = R"("model": "m", "train": "/t", "output": "/o")";
};

TEST_F(ConfigFile, WhatIsSavedIsReadBack) {
  const Arguments reported =
      parse_words({"--dev=d", "--batch=7", "--lr=1e-4", "--dropout=0", "--precision=bf16", "--best-by=exact",
                   "--strict", "--squad=2.0", "--warmup-steps=3", "--order=x.jsonl", "--seed=18446744073709551615"});
  auto settings = settings_json(train_, reported);
  settings["program"] = {{"version", "0.1.0"}};
  settings["resolved"] = {{"steps", 12}};
  settings["state"] = {{"finished", true}};
  const Arguments again = parse(settings.dump());
  EXPECT_EQ(settings_json(train_, again), settings_json(train_, reported));
  EXPECT_EQ(again.run.task.batch, 7u);
  EXPECT_EQ(again.run.task.dropout, 0.0);
}

TEST_F(ConfigFile, OptionsWin) {
  const std::string config = "{" + base_ + R"(, "batch": 4, "steps": 100, "warmup-steps": 5, "learning-rate": 1e-4})";
  const Arguments arguments = parse(config, {"--batch-per-rank=6", "--epochs=1", "--warmup=0.1"});
  EXPECT_EQ(arguments.run.task.batch, 6u);
  EXPECT_EQ(arguments.run.engine.steps, 0u);
  EXPECT_EQ(arguments.run.engine.warmup_steps, std::nullopt);
  EXPECT_EQ(arguments.run.engine.learning_rate, 1e-4);
}

TEST_F(ConfigFile, WhatIsComputedAtOnceIsReplacedWhole) {
  const std::string sequences = "{" + base_ + R"(, "micro-batch": 4})",
                    tokens = "{" + base_ + R"(, "micro-tokens": 600})";
  EXPECT_EQ(parse(sequences, {"--micro-tokens=500"}).run.engine.micro_batch, 0u);
  EXPECT_EQ(parse(tokens, {"--micro-batch=2"}).run.engine.micro_tokens, 0u);
  EXPECT_EQ(parse(tokens, {"--gradient-accumulation-steps=2"}).run.engine.micro_tokens, 0u);
  const std::string parts = "{" + base_ + R"(, "gradient-accumulation-steps": 3})";
  EXPECT_EQ(parse(parts).run.engine.accumulation, 3u);
  EXPECT_EQ(parse(parts, {"--micro-batch=2"}).run.engine.accumulation, 0u);
  EXPECT_EQ(error("{" + base_ + R"(, "micro-batch": 4, "gradient-accumulation-steps": 3})"),
            "micro-batch and gradient-accumulation-steps exclude each other; leave one of them out of the "
            "configuration");
  EXPECT_EQ(error("{" + base_ + R"(, "micro-batch": 4, "micro-tokens": 600})"),
            "micro-tokens and micro-batch exclude each other; leave one of them out of the configuration");
}

TEST_F(ConfigFile, ABatchSizePerDeviceIsReplacedByWhatTheCommandLineSays) {
  const std::string sizes = "{" + base_ + R"(, "batch_size_per_device": 3, "gradient_accumulation_steps": 2})",
                    others = "{" + base_ + R"(, "batch": 4, "micro-tokens": 600})";
  const auto batches = [](const Arguments& arguments) {
    const train::TrainConfig& engine = arguments.run.engine;
    return std::array{arguments.run.task.batch, engine.micro_batch, engine.micro_tokens, engine.accumulation};
  };
  using Batches = std::array<std::size_t, 4>;
  EXPECT_EQ(batches(parse(sizes)), (Batches{6, 3, 0, 0}));
  EXPECT_EQ(batches(parse(sizes, {"--batch=8"})), (Batches{8, 0, 0, 2}));
  EXPECT_EQ(batches(parse(sizes, {"--micro-batch=1"})), (Batches{6, 1, 0, 0})) << "the same batch";
  EXPECT_EQ(batches(parse(others, {"--batch-size-per-device=5"})), (Batches{5, 5, 0, 0}));
}

TEST_F(ConfigFile, NamesAreThoseOfTheCommandLine) {
  const std::string config =
      R"({"model_name_or_path": "m", "train_file": "/t", "output-dir": "/o", "lr": 1e-4, "max_seq_length": 128})";
  const Arguments arguments = parse(config, {"--doc-stride=64"});
  EXPECT_EQ(arguments.model, "m");
  EXPECT_EQ(arguments.run.task.train, "/t");
  EXPECT_EQ(arguments.run.engine.output, "/o");
  EXPECT_EQ(arguments.run.engine.learning_rate, 1e-4);
  EXPECT_EQ(tasks::squad_config(arguments.run).max_length, 128u);
  EXPECT_EQ(parse("{" + base_ + R"(, "learning_rate": 2e-4})").run.engine.learning_rate, 2e-4);
}

/// A file that run_qa accepts instead of command-line options.
constexpr const char* run_qa_json = R"({
  "model_name_or_path": "m", "train_file": "/t", "validation_file": "/d", "output_dir": "/o", "do_train": true,
  "do_eval": true, "overwrite_output_dir": true, "per_device_train_batch_size": 6, "num_train_epochs": 3.0,
  "max_steps": -1, "fp16": true, "bf16": false, "version_2_with_negative": true, "resume_from_checkpoint": true,
  "report_to": ["tensorboard"], "save_total_limit": null, "logging_steps": 10, "push_to_hub": false,
  "lr_scheduler_kwargs": {}, "fsdp": "", "deepspeed": null, "fsdp_config": [], "dataloader_num_workers": 4})";

TEST_F(ConfigFile, TakesTheNamesOfRunQa) {
  const Arguments arguments = parse(run_qa_json);
  EXPECT_EQ(arguments.run.task.dev, "/d");
  EXPECT_TRUE(arguments.run.task.do_eval && arguments.overwrite);
  EXPECT_EQ(arguments.run.task.batch, 6u);
  EXPECT_TRUE(arguments.batch_is_per_rank);
  EXPECT_EQ(arguments.run.engine.precision, Precision::float16);
  EXPECT_EQ(tasks::squad_config(arguments.run).squad, "2.0");
  EXPECT_EQ(arguments.train->resume, "auto");
  ASSERT_EQ(arguments.remarks.size(), 4u);
  EXPECT_EQ(arguments.remarks.front().find((directory_ / "run.json").string() + ": "), 0u) << arguments.remarks.front();
  EXPECT_NE(arguments.remarks.front().find(" has no effect here: "), std::string::npos) << arguments.remarks.front();
  EXPECT_EQ(
      error("{" + base_ + R"(, "devices": 4})"),
      (directory_ / "run.json").string() +
          ": devices 4 is not supported; leave it out: the launcher (srun, mpirun) determines the ranks, one per GPU");
}

TEST_F(ConfigFile, OptionsWinOverPeersNamesOfTheSame) {
  EXPECT_EQ(parse(run_qa_json, {"--precision=float"}).run.engine.precision, Precision::float32);
  EXPECT_EQ(parse(run_qa_json, {"--bf16"}).run.engine.precision, Precision::bfloat16);
  const Arguments arguments = parse(run_qa_json, {"--batch=8"});
  EXPECT_EQ(arguments.run.task.batch, 8u);
  EXPECT_FALSE(arguments.batch_is_per_rank);
  const std::string data_set = R"({"model": "m", "output": "/o", "dataset_name": "squad"})";
  EXPECT_EQ(parse(data_set, {"--train=/mine"}).run.task.train, "/mine");
}

TEST_F(ConfigFile, NamesOfTheSameExcludeEachOther) {
  const auto excluded = [](const std::string& one, const std::string& other) {
    return one + " and " + other + " exclude each other; leave one of them out of the configuration";
  };
  EXPECT_EQ(error("{" + base_ + R"(, "fp16": true, "precision": "float"})"), excluded("fp16", "precision"));
  EXPECT_EQ(error("{" + base_ + R"(, "fp16": true, "bf16": true})"), excluded("bf16", "fp16"));
  EXPECT_EQ(error("{" + base_ + R"(, "batch": 4, "batch-per-rank": 2})"), excluded("batch", "batch-per-rank"));
  EXPECT_EQ(error("{" + base_ + R"(, "dataset_name": "squad"})"), excluded("dataset", "train"));
  EXPECT_EQ(error("{" + base_ + R"(, "order": "x", "train-fraction": 0.5})"), excluded("order", "train-fraction"));
  EXPECT_THAT(error("{" + base_ + R"(, "recipe": "run_qa"})"),
              ::testing::EndsWith(": a recipe is named on the command line (--recipe), without --config"));
  EXPECT_NE(error("{" + base_ + R"(, "do_train": false})").find("mylos train needs --do_train"), std::string::npos);
}

TEST_F(ConfigFile, WhoComputedProductsIsRepeatedUnlessToldOtherwise) {
  const std::string config = "{" + base_ + R"(, "gemm": "auto", "resolved": {"gemm": {"default": "x", "products": [)" +
                             R"({"transpose": "NT", "n": 3, "k": 4, "input": "float", "output": "float", "rows": 8,)" +
                             R"( "provider": "y"}]}}})";
  const GemmKey key{.transpose_b = Transpose::yes,
                    .input = Precision::float32,
                    .output = Precision::float32,
                    .n = 3,
                    .k = 4,
                    .rows = 8};
  EXPECT_EQ(parse(config).run.engine.gemm.recorded, (GemmChoice{"x", {{key, "y"}}}));
  EXPECT_EQ(parse(config, {"--gemm=auto"}).run.engine.gemm.recorded, std::nullopt);
  const std::string wrong = "{" + base_ + R"(, "resolved": {"gemm": {"default": "x"}}})";
  EXPECT_NE(error(wrong).find(": resolved.gemm: "), std::string::npos) << error(wrong);
}

TEST_F(ConfigFile, WhatAResumedRunRecordedIsTakenWhereThisOneComputesAlike) {
  const std::string mine = default_gemm_provider();
  const auto taken = [&](const std::string& provider, bool tf32, const std::vector<std::string>& words) {
    Arguments arguments = parse_words(words);
    const nlohmann::ordered_json saved = {
        {"tf32", tf32},
        {"resolved", {{"gemm", {{"default", provider}, {"products", nlohmann::ordered_json::array()}}}}}};
    take_recorded_choices(saved, "run.json", arguments);
    return arguments.run.engine.gemm.recorded;
  };
  EXPECT_EQ(taken(mine, false, {}), (GemmChoice{mine, {}}));
  EXPECT_EQ(taken(mine, false, {"--gemm=auto"}), std::nullopt);
  EXPECT_EQ(taken(mine, true, {}), std::nullopt) << "TF32 only where it is asked for";
  EXPECT_EQ(taken("of-another-build", false, {}), std::nullopt);
}

TEST_F(ConfigFile, TheAttentionOfARunIsRepeatedUnlessToldOtherwise) {
  const auto kernel = [&](const std::string& recorded, const std::vector<std::string>& words = {}) {
    return parse("{" + base_ + R"(, "attention": "auto", "resolved": {"attention": )" + recorded + "}}", words)
        .run.task.recorded_attention;
  };
  EXPECT_EQ(kernel(R"("cudnn")"), AttentionKernel::cudnn);
  EXPECT_EQ(kernel(R"("cudnn")", {"--attention=auto"}), std::nullopt);
  EXPECT_EQ(kernel(R"("of-another-version")"), std::nullopt);
  EXPECT_EQ(kernel("7"), std::nullopt);
  EXPECT_EQ(parse("{" + base_ + "}").run.task.recorded_attention, std::nullopt);
}

TEST_F(ConfigFile, AResumedRunKeepsItsAttention) {
  const auto taken = [&](const std::vector<std::string>& words) {
    Arguments arguments = parse_words(words);
    take_recorded_choices({{"resolved", {{"attention", "tensor-cores"}}}}, "run.json", arguments);
    return arguments.run.task.recorded_attention;
  };
  EXPECT_EQ(taken({}), AttentionKernel::tensor_cores);
  EXPECT_EQ(taken({"--attention=auto"}), std::nullopt);
}

TEST_F(ConfigFile, ARunThatGoesOnOrIsRepeatedKeepsTheTimeOfItsConversations) {
  const auto repeated = [&](const std::string& resolved) {
    return parse("{" + base_ + R"(, "resolved": )" + resolved + "}").run.task.recorded_chat_time;
  };
  EXPECT_EQ(repeated(R"({"chat-time": "2026-11-30 21:25:29"})"), "2026-11-30 21:25:29");
  EXPECT_EQ(repeated(R"({"chat-time": 7})"), "");
  EXPECT_EQ(repeated("{}"), "");
  Arguments arguments = parse_words();
  take_recorded_choices({{"resolved", {{"chat-time", "2026-11-30 21:25:29"}}}}, "run.json", arguments);
  EXPECT_EQ(arguments.run.task.recorded_chat_time, "2026-11-30 21:25:29");
}

/// Returns a layout as resolved on this build's devices.
nlohmann::ordered_json resolved_layout() {
  return {{"micro-batch", 3u},
          {"execution", ExecutionSpace::name()},
          {"device", "a device"},
          {"ranks", 2u},
          {"mode", "sharded"}};
}

TEST_F(ConfigFile, TheLayoutOfARunIsRepeatedUnlessToldOtherwise) {
  const auto layout = [&](const nlohmann::ordered_json& resolved, const std::vector<std::string>& words = {}) {
    return parse("{" + base_ + R"(, "resolved": )" + resolved.dump() + "}", words).run.engine.recorded_layout;
  };
  const auto recorded = layout(resolved_layout());
  ASSERT_TRUE(recorded.has_value());
  EXPECT_EQ(recorded->micro_batch, 3u);
  EXPECT_EQ(recorded->ranks, 2u);
  EXPECT_EQ(recorded->strategy, parallel::StrategyKind::sharded);
  EXPECT_EQ(recorded->device, "a device");
  EXPECT_FALSE(layout(resolved_layout(), {"--batch=8"})) << "memory was planned for another batch";
  nlohmann::ordered_json other = resolved_layout();
  other["execution"] = "of another build";
  EXPECT_FALSE(layout(other));
  other = resolved_layout();
  other["micro-batch"] = "3";
  EXPECT_THAT(error("{" + base_ + R"(, "resolved": )" + other.dump() + "}"),
              testing::EndsWith(": resolved.micro-batch: expected a whole number from 1 on, not \"3\""));
}

TEST_F(ConfigFile, TheLayoutOfAResumedRunIsTakenUnderTheSameSettings) {
  const auto taken = [&](nlohmann::ordered_json change) {
    Arguments arguments = parse_words();
    nlohmann::ordered_json saved = settings_json(train_, arguments);
    saved["resolved"] = resolved_layout();
    saved.update(change);
    take_recorded_choices(saved, "run.json", arguments);
    return arguments.run.engine.recorded_layout.has_value();
  };
  EXPECT_TRUE(taken(nlohmann::ordered_json::object()));
  EXPECT_FALSE(taken({{"micro-tokens", 512}})) << "its micro-batches had other sizes";
  EXPECT_FALSE(taken({{"precision", "bfloat16"}})) << "memory was planned for another type";
  EXPECT_FALSE(taken({{"resolved", {{"steps", 4}}}}));
}

TEST_F(ConfigFile, AnotherNameOfAFileIsNoDifference) {
  const auto file = directory_ / "data" / "train.json";
  tests::write_file(file, "{}");
  std::filesystem::create_directory_symlink(directory_ / "data", directory_ / "link");
  const std::vector<std::string> words = {"--model=m", "--output=o", "--train", directory_ / "link/train.json"};
  const Arguments now = parse_arguments(FileReader(), train_, words);
  EXPECT_TRUE(differing_settings({{"train", file.string()}}, train_, now).empty());
  EXPECT_EQ(differing_settings({{"train", (directory_ / "data/dev.json").string()}}, train_, now).size(), 1u);
}

TEST_F(ConfigFile, AChangedDefaultIsNoDifference) {
  using OrderedJson = nlohmann::ordered_json;
  const Arguments plain = parse_words(), seeded = parse_words({"--seed=7"});
  const auto differing = [&](const OrderedJson& saved, const Arguments& now) {
    return differing_settings(saved, train_, now);
  };
  EXPECT_EQ(changed_options(train_, seeded), OrderedJson({"model", "train", "output", "seed"}));
  // From a version with other defaults, in which batch was set and seed was not.
  const OrderedJson saved = {{"model", "m"},
                             {"train", settings_json(train_, plain)["train"]},
                             {"batch", 8},
                             {"seed", 1},
                             {"program", {{"changed", {"batch"}}}}};
  EXPECT_EQ(differing(saved, plain), std::vector<std::string>{"batch 8, now 12"});
  EXPECT_EQ(differing(saved, seeded), (std::vector<std::string>{"batch 8, now 12", "seed 1, now 7"}));
  // A version without this option used its default.
  EXPECT_EQ(differing(saved, parse_words({"--batch=8", "--decay-all"})),
            std::vector<std::string>{"decay-all false, now true"});
  // From a version that did not record such a list: only unset options are known to be defaults.
  const OrderedJson older = {{"seed", 1}, {"checkpoint-every", nullptr}};
  EXPECT_EQ(differing(older, plain), std::vector<std::string>{"seed 1, now 42"});
  EXPECT_EQ(differing(older, parse_words({"--checkpoint-every=5", "--seed=1"})),
            std::vector<std::string>{"checkpoint-every unset, now 5"});
}

TEST_F(ConfigFile, DefaultsOfAnotherOptimizerAreNoError) {
  const Arguments reported = parse_words({"--optimizer=sgd", "--nesterov"});
  const auto settings = settings_json(train_, reported);
  EXPECT_EQ(settings["adam-beta1"], 0.9);
  const Arguments again = parse(settings.dump());
  EXPECT_EQ(settings_json(train_, again), settings);
  EXPECT_TRUE(again.run.engine.optimizer.value("nesterov") == 1.0);
}

TEST_F(ConfigFile, SettingsOfAnotherOptimizerOrScheduleAreErrors) {
  EXPECT_EQ(error("{" + base_ + R"(, "optimizer": "sgd", "adam-beta1": 0.8})"),
            "adam-beta1 needs optimizer adamw, but the optimizer is sgd; leave it out of the configuration");
  EXPECT_EQ(error("{" + base_ + R"(, "momentum": 0.8})"),
            "momentum needs optimizer sgd, but the optimizer is adamw; leave it out of the configuration");
  EXPECT_EQ(error("{" + base_ + R"(, "decay-steps": "5,9"})"),
            "decay-steps needs schedule step, but the schedule is linear; leave it out of the configuration");
}

TEST_F(ConfigFile, AnotherOptimizerOrScheduleDropsTheSettingsOfTheConfigurations) {
  const std::string sgd = "{" + base_ + R"(, "optimizer": "sgd", "momentum": 0.8, "nesterov": true})";
  EXPECT_EQ(parse(sgd).run.engine.optimizer.value("momentum"), 0.8);
  EXPECT_EQ(parse(sgd, {"--optimizer=adamw"}).run.engine.optimizer.value("momentum"), 0.9);
  EXPECT_EQ(parse(sgd, {"--optimizer=adamw"}).run.engine.optimizer.value("nesterov"), 0.0);
  const std::string adamw =
      "{" + base_ + R"(, "adam-beta1": 0.8, "adam-beta2": 0.9, "adam-epsilon": 1e-5, "weight-decay": 0.1})";
  const nn::OptimizerConfig replaced = parse(adamw, {"--optimizer=sgd"}).run.engine.optimizer;
  EXPECT_EQ(replaced.value("adam-beta1"), 0.9);
  EXPECT_EQ(replaced.value("adam-beta2"), 0.999);
  EXPECT_EQ(replaced.value("adam-epsilon"), 1e-8);
  EXPECT_EQ(replaced.weight_decay, 0.1);
  const std::string step = "{" + base_ + R"(, "schedule": "step", "decay-steps": "5,9", "decay-factor": 0.5})";
  EXPECT_EQ(parse(step).run.engine.decay_steps, (std::vector<std::size_t>{5, 9}));
  EXPECT_TRUE(parse(step, {"--schedule=linear"}).run.engine.decay_steps.empty());
  EXPECT_EQ(parse(step, {"--schedule=linear"}).run.engine.decay_factor, 0.1);
}

TEST_F(ConfigFile, TheOrderOfWordsDoesNotMatter) {
  const std::string file = write("{" + base_ + R"(, "batch": 4})");
  const std::vector<std::string> words = {"--batch=9", "--config", file};
  EXPECT_EQ(parse_arguments(FileReader(), train_, words).run.task.batch, 9u);
}

TEST_F(ConfigFile, WrongFilesAreNamed) {
  const std::string file = (directory_ / "run.json").string();
  EXPECT_EQ(error("{"), "--config " + file + ": not JSON, or nested too deeply");
  EXPECT_EQ(error("[1]"), "--config " + file + ": not a JSON object");
  EXPECT_EQ(error(R"({"bacth": 4})"), file + ": unknown key \"bacth\"; did you mean batch?");
  EXPECT_EQ(error(R"({"config": "a.json"})").find(file + ": unknown key \"config\""), 0u);
  EXPECT_EQ(error(R"({"batchsize": 4})"),
            file + ": unknown key \"batchsize\"; use --batch (all ranks together) or --batch-per-rank");
  EXPECT_EQ(error(R"({"batch": [4]})"), file + ": key batch: expected a number, a string, true or false");
  EXPECT_EQ(error(R"({"batch": 1.5})"), file + ": batch 1.5: expected a whole number from 1 to 1000000");
  const std::vector<std::string> words = {"--config", file + "x"};
  const std::string missing = tests::error_of([&] { parse_arguments(FileReader(), train_, words); });
  EXPECT_EQ(missing, "cannot read " + file + "x: No such file or directory");
}

}  // namespace
}  // namespace mylos::app
