#include "app/options/task_choice.hpp"

#include "app/options/parse.hpp"
#include "tests/small_models/word_kind.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class TaskChoice : public testing::Test {
 protected:
  void SetUp() override {
    tests::write_file(directory_ / "words/config.json", R"({"model_type": "word_pairs"})");
    tests::write_file(directory_ / "images/config.json", R"({"model_type": "resnet"})");
  }

  static std::string choice(const Words& words, const char* command = "train") {
    return std::string(choose_task(FileReader(), *find_command(command), words).name());
  }

  tests::TemporaryDirectory directory_;
  const std::string words_ = directory_ / "words", images_ = directory_ / "images";
  tasks::RegisteredTaskKind next_word_{small_models::next_word()};
};

TEST_F(TaskChoice, FollowsTheModelByAnyOfItsNames) {
  EXPECT_EQ(choice({"--model", words_}), "next-word");
  EXPECT_EQ(choice({"--model=" + images_}), "image-classification");
  EXPECT_EQ(choice({"--model_name_or_path", images_}), "image-classification");
  EXPECT_EQ(choice({"--model", images_, "--model", words_}), "next-word") << "the last one counts";
  EXPECT_EQ(choice({"--model", "bert-base"}, "plan"), "question-answering");
}

TEST_F(TaskChoice, WhatIsNamedWinsOverTheModel) {
  EXPECT_EQ(choice({"--model", words_, "--task", "image-classification"}), "image-classification");
  const std::string config = directory_ / "run.json";
  tests::write_file(config, R"({"task": "image-classification", "model": ")" + words_ + "\"}");
  EXPECT_EQ(choice({"--config", config}), "image-classification");
  EXPECT_EQ(choice({"--config", config, "--task=next-word"}), "next-word");
  tests::write_file(config, R"({"model_name_or_path": ")" + words_ + "\"}");
  EXPECT_EQ(choice({"--config", config}), "next-word");
  EXPECT_EQ(choice({"--config", config, "--model", images_}), "image-classification");
}

TEST_F(TaskChoice, IsTheDefaultWhereNothingSaysMore) {
  EXPECT_EQ(choice({}), "question-answering");
  EXPECT_EQ(choice({"--task"}), "question-answering");
  EXPECT_EQ(choice({"--task", "chess"}), "question-answering") << "the option itself says what is wrong";
  EXPECT_EQ(choice({"--model", directory_ / "none"}), "question-answering");
  EXPECT_EQ(choice({"--config", directory_ / "none.json"}), "question-answering");
  EXPECT_EQ(choice({"--", "--model", words_}), "question-answering");
}

/// The default task then refuses what the model's own may take.
TEST_F(TaskChoice, AMissingModelIsReportedBeforeWhatItsTaskRefuses) {
  const std::string absent = directory_ / "absent", config = directory_ / "run.json";
  tests::write_file(
      directory_ / "adapter/adapter_config.json",
      R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"], "base_model_name_or_path": "/nosuch/base"})");
  const auto error = [](const char* command, const Words& words) {
    return tests::error_of([&] { parse_arguments(FileReader(), *find_command(command), words); });
  };
  for (const char* command : {"train", "prepare", "plan"}) {
    EXPECT_EQ(error(command, {"--model", absent, "--max-length", "64"}), "no directory " + absent) << command;
  }
  EXPECT_EQ(error("train", {"--model", absent, "--text-field", "body"}), "no directory " + absent);
  EXPECT_EQ(error("eval", {"--model", absent, "--loss-on", "all"}), "no directory " + absent);
  EXPECT_THAT(error("train", {"--model", "me/nosuch", "--max-length", "64"}), StartsWith("no model \"me/nosuch\""));
  EXPECT_THAT(error("train", {"--model", directory_ / "adapter", "--max-length", "64"}),
              HasSubstr("adapter_config.json: its base is not here: no directory /nosuch/base; if it is elsewhere, "
                        "give it as `model`, and this directory as `adapter`"));
  tests::write_file(config, R"({"model": ")" + absent + R"(", "text-field": "body"})");
  EXPECT_EQ(error("train", {"--config", config}), "no directory " + absent);
  EXPECT_THAT(error("train", {"--model", absent, "--max-length", "64", "--task", "question-answering"}),
              StartsWith("--doc-stride 128: expected less"));
  EXPECT_EQ(error("train", {"--model", absent, "--lerning-rate", "3"}),
            "train does not have --lerning-rate; did you mean --learning-rate?");
}

TEST_F(TaskChoice, ARegisteredTaskIsAValueOfTheOption) {
  const std::vector<std::string> words = {
      "--task", "image-classification", "--model", images_, "--train", "t", "--output", "o"};
  EXPECT_EQ(parse_arguments(FileReader(), *find_command("train"), words).task->name(), "image-classification");
}

TEST_F(TaskChoice, ACommandOfOneTaskHasNoChoice) {
  EXPECT_EQ(choice({"--model", words_}, "ask"), "question-answering");
  EXPECT_EQ(choice({"--task", "next-word"}, "score"), "question-answering");
}

/// Needed before MPI starts, and options are parsed only after that.
TEST(CollectiveTimeout, IsFoundInWordsThatAreNotParsedYet) {
  EXPECT_EQ(collective_timeout_in(Words{"--mode", "sharded", "--collective_timeout", "3s"}), 3.0);
  EXPECT_EQ(collective_timeout_in(Words{"--ddp-timeout=90", "--unknown"}), 90.0);
  EXPECT_EQ(collective_timeout_in(Words{}), 600.0);
  EXPECT_EQ(collective_timeout_in(Words{"--collective-timeout", "soon"}), 600.0) << "the parser says what is wrong";
}

}  // namespace
}  // namespace mylos::app
