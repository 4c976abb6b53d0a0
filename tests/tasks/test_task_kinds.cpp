#include "tasks/task_kinds.hpp"

#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"
#include "tests/small_models/word_kind.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

TEST(TaskKinds, TheDefaultIsTheFirst) {
  EXPECT_EQ(task_kinds().front(), &default_task_kind());
  EXPECT_EQ(find_task_kind("question-answering"), &default_task_kind());
  EXPECT_EQ(find_task_kind("question answering"), nullptr);
}

TEST(TaskKinds, ARegisteredKindIsThereWhileItIsRegistered) {
  EXPECT_EQ(find_task_kind("next-word"), nullptr);
  {
    const RegisteredTaskKind registered(small_models::next_word());
    EXPECT_EQ(find_task_kind("next-word"), &small_models::next_word());
    EXPECT_EQ(task_kinds().front(), &default_task_kind());
  }
  EXPECT_EQ(find_task_kind("next-word"), nullptr);
}

TEST(TaskKinds, AModelsConfigurationSaysItsKind) {
  const RegisteredTaskKind registered(small_models::next_word());
  const tests::TemporaryDirectory directory;
  EXPECT_EQ(kind_of_model(FileReader(), directory.path()), nullptr) << "no config.json";
  tests::write_file(directory / "config.json", R"({"model_type": "word_pairs"})");
  EXPECT_EQ(kind_of_model(FileReader(), directory.path()), &small_models::next_word());
  tests::write_file(directory / "config.json", R"({"model_type": "bert"})");
  EXPECT_EQ(kind_of_model(FileReader(), directory.path()), &default_task_kind());
  for (const char* config : {R"({"model_type": "roberta"})", R"({"model_type": 3})", "{", "[]"}) {
    tests::write_file(directory / "config.json", config);
    EXPECT_EQ(kind_of_model(FileReader(), directory.path()), nullptr) << config;
  }
}

/// A kind that serves BERT, too.
class OtherKind final : public TaskKind {
 public:
  OtherKind()
      : TaskKind({.name = "other",
                  .title = "others",
                  .data_texts = {},
                  .takes = families::BodyOutput::tokens,
                  .architecture = "ForOthers"}) {}
  void set_defaults(RunConfig&, std::string_view) const override {}
  std::unique_ptr<Task> make(const FileReader&, const RunConfig&, const Notice&) const override { return nullptr; }
  ExportedModel export_model(const TrainedModel&) const override { return {}; }
  PlannedRun plan(const std::string&, const std::filesystem::path&, const RunConfig&, const OptionSources&,
                  const Notice&) const override {
    return {};
  }
};

TEST(TaskKinds, OfSeveralTheClassOfTheModelDecides) {
  const OtherKind other;
  const RegisteredTaskKind registered(other);
  const tests::TemporaryDirectory directory;
  const auto kind_of = [&](const char* architecture, const TaskKind* preferred = nullptr) {
    tests::write_file(directory / "config.json",
                      fmt::format(R"({{"model_type": "bert", "architectures": {}}})", architecture));
    return kind_of_model(FileReader(), directory.path(), preferred);
  };
  EXPECT_EQ(kind_of(R"(["BertForOthers"])"), &other);
  EXPECT_EQ(kind_of(R"(["BertForOthers"])", &default_task_kind()), &default_task_kind());
  for (const char* unknown : {R"(["BertForQuestionAnswering"])", R"(["BertForMaskedLM"])", "[3]", "[]", "null"}) {
    EXPECT_EQ(kind_of(unknown), &default_task_kind()) << unknown;
  }
}

TEST(TaskKinds, KnownModelsHaveAKind) {
  EXPECT_EQ(kind_of_known_model("bert-base"), &default_task_kind());
  EXPECT_EQ(kind_of_known_model("bert-base-uncased"), &default_task_kind());
  EXPECT_EQ(kind_of_known_model("resnet20"), nullptr);
  const TaskKind* images = find_task_kind("image-classification");
  EXPECT_EQ(kind_of_known_model("resnet18"), images);
  EXPECT_TRUE(images->trains_by_name("resnet18"));
  EXPECT_FALSE(images->trains_by_name("microsoft/resnet-18")) << "is fetched with its weights";
  EXPECT_FALSE(default_task_kind().trains_by_name("bert-base"));
}

TEST(TaskKinds, EachKnowsOptionsOfOtherProgramsForItsTask) {
  const auto has = [](std::string_view name) { return testing::Contains(testing::Field(&PeerOption::name, name)); };
  EXPECT_THAT(find_task_kind("question-answering")->peer_options(), has("dataset-config-name"));
  EXPECT_THAT(find_task_kind("image-classification")->peer_options(), has("logfile"));
}

TEST(TaskKinds, ARunBeginsWithTheDefaultsOfItsKind) {
  EXPECT_EQ(default_run(default_task_kind(), "train").task.batch, 12u);
  const RunConfig images = default_run(*find_task_kind("image-classification"), "train");
  EXPECT_EQ(images.engine.optimizer.name, "sgd");
}

}  // namespace
}  // namespace mylos::tasks
