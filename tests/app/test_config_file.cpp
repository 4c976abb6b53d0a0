#include "app/config_file.hpp"

#include "app/parse.hpp"
#include "app/usage_error.hpp"
#include "core/kernels/gemm.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

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
  /// What `train` was told by a configuration of `text` and by `words`.
  Arguments parse(const std::string& text, std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"--config", write(text)});
    return parse_arguments(train_, words);
  }
  std::string error(const std::string& text) {
    return tests::error_of([&] { parse(text); });
  }

  TemporaryDirectory directory_;
  const Command& train_ = *find_command("train");
  const std::string base_ = R"("model": "m", "train": "/t", "output": "/o")";
};

TEST_F(ConfigFile, WhatIsSavedIsReadBack) {
  const std::vector<std::string> words = {"--model=m",       "--train=t",
                                          "--dev=d",         "--output=o",
                                          "--batch=7",       "--lr=1e-4",
                                          "--dropout=0",     "--precision=bf16",
                                          "--best-by=exact", "--strict",
                                          "--squad=2.0",     "--warmup-steps=3",
                                          "--order=x.jsonl", "--seed=18446744073709551615"};
  const Arguments told = parse_arguments(train_, words);
  auto settings = settings_json(train_, told);
  settings["program"] = {{"version", "0.1.0"}};
  settings["resolved"] = {{"steps", 12}};
  settings["state"] = {{"finished", true}};
  const Arguments again = parse(settings.dump());
  EXPECT_EQ(settings_json(train_, again), settings_json(train_, told));
  EXPECT_EQ(again.run.squad.batch, 7u);
  EXPECT_EQ(again.run.squad.dropout, 0.0);
}

TEST_F(ConfigFile, OptionsWin) {
  const std::string config = "{" + base_ + R"(, "batch": 4, "steps": 100, "warmup-steps": 5, "learning-rate": 1e-4})";
  const Arguments arguments = parse(config, {"--batch-per-rank=6", "--epochs=1", "--warmup=0.1"});
  EXPECT_EQ(arguments.run.squad.batch, 6u);
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

TEST_F(ConfigFile, NamesAreThoseOfTheCommandLine) {
  const std::string config =
      R"({"model_name_or_path": "m", "train_file": "/t", "output-dir": "/o", "lr": 1e-4, "max_seq_length": 128})";
  const Arguments arguments = parse(config, {"--doc-stride=64"});
  EXPECT_EQ(arguments.model, "m");
  EXPECT_EQ(arguments.run.squad.train, "/t");
  EXPECT_EQ(arguments.run.engine.output, "/o");
  EXPECT_EQ(arguments.run.engine.learning_rate, 1e-4);
  EXPECT_EQ(arguments.run.squad.max_length, 128u);
  EXPECT_EQ(parse("{" + base_ + R"(, "learning_rate": 2e-4})").run.engine.learning_rate, 2e-4);
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
    std::vector<std::string> all = {"--model=m", "--train=t", "--output=o"};
    all.insert(all.end(), words.begin(), words.end());
    Arguments arguments = parse_arguments(train_, all);
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

TEST_F(ConfigFile, TheOrderOfWordsDoesNotMatter) {
  const std::string file = write("{" + base_ + R"(, "batch": 4})");
  const std::vector<std::string> words = {"--batch=9", "--config", file};
  EXPECT_EQ(parse_arguments(train_, words).run.squad.batch, 9u);
}

TEST_F(ConfigFile, WrongFilesAreNamed) {
  const std::string file = (directory_ / "run.json").string();
  EXPECT_EQ(error("{"), "--config " + file + ": not JSON");
  EXPECT_EQ(error("[1]"), "--config " + file + ": not a JSON object");
  EXPECT_EQ(error(R"({"bacth": 4})"), file + ": unknown key \"bacth\"; did you mean batch?");
  EXPECT_EQ(error(R"({"overwrite": true})"), file + ": unknown key \"overwrite\"");
  EXPECT_EQ(error(R"({"batch": [4]})"), file + ": key batch: expected a number, a string, true or false");
  EXPECT_EQ(error(R"({"batch": 0})"), file + ": batch 0: expected a whole number from 1 to 1000000");
  EXPECT_EQ(error(R"({"batch": 1.5})"), file + ": batch 1.5: expected a whole number from 1 to 1000000");
  const std::vector<std::string> words = {"--config", file + "x"};
  const std::string missing = tests::error_of([&] { parse_arguments(train_, words); });
  EXPECT_EQ(missing, "cannot read " + file + "x: No such file or directory");
}

}  // namespace
}  // namespace mylos::app
