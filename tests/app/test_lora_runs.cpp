#include "data/huggingface/safetensors.hpp"
#include "tests/app/lora_runs.hpp"

#include <algorithm>
#include <set>

/// Training, resumption, exports and merging of adapters.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

std::set<std::string> tensors_of(const fs::path& adapter) {
  std::set<std::string> names;
  const data::SafetensorsFile file(FileReader(), adapter / "adapter_model.safetensors");
  for (const data::TensorInfo& tensor : file.tensors()) names.insert(tensor.name);
  return names;
}

TEST_F(LoraRuns, GoOnInAnotherModeOnSeveralRanks) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  const fs::path whole = directory_ / "whole";
  const Words all = {"--lora-rank",    "3",   "--lora-targets", "all-linear",
                     "--lora-dropout", "0.1", "--lora-train",   "lm_head"};
  const ProgramRun one = run_mylos(train_words(whole, joined(all, {"--steps", "6"})));
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  const ProgramRun first = train(joined(all, {"--steps", "3"}));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const Words more = {"--steps", "6", "--extend", "--mode", "sharded"};
  const ProgramRun second = run_on(2, train_words(run_, joined(all, more)));
  ASSERT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr("goes on after step 3, from "));
  const std::vector<double> losses = values_of(run_, "loss"), expected = values_of(whole, "loss");
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << i;
  EXPECT_THAT(tensors_of(run_ / "last"), Contains("base_model.model.lm_head.weight"));
}

TEST_F(LoraRuns, DeterministicRunsWriteTheSameBytes) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  const Words all = {"--lora-rank", "2", "--lora-dropout", "0.1", "--steps", "3", "--deterministic"};
  const fs::path one = directory_ / "one";
  const ProgramRun alone = run_mylos(train_words(one, all));
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  for (const char* mode : {"replicated", "sharded-optimizer", "sharded-gradients", "sharded"}) {
    const fs::path output = directory_ / mode;
    const ProgramRun run = run_on(2, train_words(output, joined(all, {"--mode", mode})));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(values_of(output, "loss"), values_of(one, "loss")) << mode;
    for (const char* name : {"last/adapter_model.safetensors", "best/adapter_config.json"}) {
      EXPECT_TRUE(read_file(output / name) == read_file(one / name)) << mode << " " << name;
    }
  }
}

TEST_F(LoraRuns, AdaptersAndMergedModelsAreTheSameModel) {
  train_adapters({"--lora-targets", "q,v,down", "--lora-rslora", "--lora-train", "norm"});
  for (const char* name : {"best", "last"}) {
    EXPECT_THAT(names_in(run_ / name), UnorderedElementsAre("adapter_config.json", "adapter_model.safetensors"));
  }
  EXPECT_EQ(read_json(run_ / "best/adapter_config.json")["base_model_name_or_path"], base_.string());
  const fs::path exported = directory_ / "exported";
  ASSERT_EQ(run_mylos({"checkpoint", "export", run_, "--output", exported}).exit_code, 0);
  for (const std::string& name : names_in(run_ / "last")) {
    EXPECT_TRUE(read_file(exported / name) == read_file(run_ / "last" / name)) << name;
  }
  const ProgramRun merge = run_mylos({"merge", "--model", run_ / "last", "--output", merged_});
  ASSERT_EQ(merge.exit_code, 0) << merge.errors;
  EXPECT_THAT(merge.errors, ::testing::Not(HasSubstr("--max-length")));
  const ProgramRun run = run_mylos({"checkpoint", "export", run_, "--merge", "--output", directory_ / "of-run"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const std::string& name : names_in(merged_)) {
    EXPECT_TRUE(read_file(directory_ / "of-run" / name) == read_file(merged_ / name)) << name;
  }
  EXPECT_EQ(names_in(merged_), names_in(base_));
  EXPECT_FALSE(read_file(merged_ / "model.safetensors") == read_file(base_ / "model.safetensors"));
  const json expected = scores(merged_);
  EXPECT_EQ(scores(run_ / "last"), expected);
  EXPECT_EQ(scores(base_, {"--adapter", run_ / "last"}), expected);
  EXPECT_EQ(scores(base_, {"--adapter", run_}), scores(run_));
  EXPECT_NEAR(values_of(run_, "validation_loss").back(), expected["loss"].get<double>(), 1e-5);
  EXPECT_NE(scores(base_), expected);
  for (const auto& name : names_in(directory_.path())) EXPECT_THAT(name, ::testing::Not(HasSubstr("-adapter"))) << name;
  const auto text_of = [](const Words& more) {
    const ProgramRun generated = run_mylos(joined({"generate", "abba", "--max-new-tokens", "6"}, more));
    EXPECT_EQ(generated.exit_code, 0) << generated.errors;
    return generated.output;
  };
  EXPECT_EQ(text_of({"--model", run_ / "last"}), text_of({"--model", merged_}));
  EXPECT_EQ(text_of({"--model", base_, "--adapter", run_ / "last"}), text_of({"--model", merged_}));
}

/// Training from an adapter's values goes on with them, and its export names the same base.
TEST_F(LoraRuns, GoOnFromAnAdapter) {
  train_adapters();
  const fs::path next = directory_ / "next", again = directory_ / "again";
  const Words steps = {"--steps", "1", "--checkpoint-every", "1"};
  const ProgramRun run = run_mylos(train_words(next, joined({"--adapter", run_}, steps)));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_NE(values_of(next, "loss").front(), values_of(run_, "loss").front());
  Words words = train_words(again, steps);
  std::ranges::replace(words, base_.string(), (run_ / "best").string());
  const ProgramRun same = run_mylos(words);
  ASSERT_EQ(same.exit_code, 0) << same.errors;
  EXPECT_EQ(values_of(again, "loss"), values_of(next, "loss"));
  for (const fs::path& output : {next, again}) {
    const fs::path exported = directory_ / ("of-" + output.filename().string());
    const ProgramRun written = run_mylos({"checkpoint", "export", output, "--output", exported});
    ASSERT_EQ(written.exit_code, 0) << written.errors;
    for (const std::string& name : names_in(exported)) {
      EXPECT_TRUE(read_file(exported / name) == read_file(next / "last" / name)) << name;
    }
  }
}

TEST_F(LoraRuns, AreRepeatedFromTheirRecordAndPlanned) {
  train_adapters({"--lora-targets", R"(.*layers\.\d{1,2}\.self_attn\.(q|v)_proj)"});
  const fs::path next = directory_ / "next", again = directory_ / "again";
  Words words = train_words(next, {"--steps", "1"});
  std::ranges::replace(words, base_.string(), run_.string());
  ASSERT_EQ(run_mylos(words).exit_code, 0);
  EXPECT_EQ(read_json(next / "run.json")["model"], base_.string());
  const ProgramRun repeated = run_mylos({"train", "--config", next / "run.json", "--output", again});
  ASSERT_EQ(repeated.exit_code, 0) << repeated.errors;
  EXPECT_EQ(values_of(again, "loss"), values_of(next, "loss"));
  const ProgramRun plan = run_mylos({"plan", "--model", run_, "--gpu", "a100-80"});
  EXPECT_THAT(plan.output, HasSubstr("of them frozen"));
  write_file(directory_ / "other" / "adapter_config.json", R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4,
    "target_modules": ["q_proj"], "base_model_name_or_path": ")" +
                                                               base_.string() + "\"}");
  const ProgramRun built_in =
      run_mylos({"plan", "--model", "codellama-7b", "--adapter", directory_ / "other", "--gpu", "a100-80"});
  EXPECT_THAT(built_in.output, HasSubstr("of them frozen")) << built_in.errors;
}

TEST_F(LoraRuns, AreCompared) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  Words words = train_words(run_, {"--lora-rank", "2", "--steps", "2", "--modes", "replicated,sharded", "--ranks", "2",
                                   "--repeats", "1", "--json"});
  words.front() = "compare";
  const ProgramRun run = run_mylos(words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json lines = json::parse(run.output);
  ASSERT_EQ(lines.size(), 4u);  // each of the adapters, and of the whole model
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NEAR(lines[i]["loss"].get<double>(), lines[i % 2]["loss"].get<double>(), 1e-5);
  }
  EXPECT_EQ(lines[1]["mode"], "replicated, whole");
  EXPECT_NE(lines[0]["loss"], lines[1]["loss"]);
}

TEST_F(LoraRuns, TrainTheHeadOfQuestionAnsweringWhole) {
  const fs::path bert = golden_data() / "reference/examples_run", squad = source_dir() / "examples/squad";
  const ProgramRun run = run_mylos({"train",
                                    "--model",
                                    bert,
                                    "--train",
                                    squad / "train.json",
                                    "--dev",
                                    squad / "dev.json",
                                    "--output",
                                    run_,
                                    "--steps",
                                    "2",
                                    "--max-length",
                                    "128",
                                    "--doc-stride",
                                    "32",
                                    "--lora-rank",
                                    "2",
                                    "--lora-targets",
                                    "query,value",
                                    "--lora-train",
                                    "qa_outputs"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(tensors_of(run_ / "best"),
              AllOf(Contains("base_model.model.qa_outputs.weight"), Contains("base_model.model.qa_outputs.bias"),
                    Contains(EndsWith("layer.0.attention.self.query.lora_A.weight"))));
  const json config = read_json(run_ / "best/adapter_config.json");
  EXPECT_EQ(config["task_type"], "QUESTION_ANS");
  EXPECT_EQ(config["modules_to_save"], json{"qa_outputs"});
  ASSERT_EQ(run_mylos({"merge", "--model", run_, "--output", merged_}).exit_code, 0);
  write_file(directory_ / "text", "The mill stands by the river.");
  const auto answer = [&](const fs::path& model) {
    const ProgramRun asked = run_mylos({"ask", "--model", model, "--context", directory_ / "text", "--max-length",
                                        "128", "--doc-stride", "32", "--json", "Where does the mill stand?"});
    EXPECT_EQ(asked.exit_code, 0) << asked.errors;
    return asked.output;
  };
  EXPECT_EQ(answer(run_ / "best"), answer(merged_));
  expect_refused(run_mylos(train_words(directory_ / "other", {"--adapter", run_ / "best", "--steps", "1"})),
                 "adapter_config.json: task_type is QUESTION_ANS, but this task's is CAUSAL_LM; give an adapter of");
}

/// Another version of transformers writes defaults, and other places for the same values.
TEST_F(LoraRuns, TakeACopyOfTheirBaseThatWasSavedAnew) {
  train_adapters();
  const fs::path saved = directory_ / "saved";
  fs::copy(base_, saved);
  json config = read_json(saved / "config.json");
  config["rope_parameters"] = {{"rope_theta", config["rope_theta"]}, {"rope_type", "default"}};
  for (const char* key : {"rope_theta", "rope_scaling", "head_dim", "pad_token_id"}) config.erase(key);
  config["use_cache"] = true;
  write_file(saved / "config.json", config.dump());
  EXPECT_EQ(scores(saved, {"--adapter", run_}), scores(run_));
}

/// Others find the base of an adapter by its name, and so do we.
TEST_F(LoraRuns, NameTheBaseAsTheHubDoes) {
  const EnvironmentVariable cache("XDG_CACHE_HOME", (directory_ / "cache").string());
  const fs::path fetched = directory_ / "cache" / "mylos" / "models" / "owner" / "name";
  fs::create_directories(fetched.parent_path());
  fs::rename(base_, fetched);
  base_ = "owner/name";
  train_adapters();
  EXPECT_EQ(read_json(run_ / "best" / "adapter_config.json")["base_model_name_or_path"], "owner/name");
  EXPECT_EQ(scores(run_), scores(base_, {"--adapter", run_ / "best"}));
  const auto base_in = [](const fs::path& adapter) {
    return read_json(adapter / "adapter_config.json")["base_model_name_or_path"];
  };
  EXPECT_EQ(run_mylos({"checkpoint", "export", run_, "--output", directory_ / "exported"}).exit_code, 0);
  EXPECT_EQ(base_in(directory_ / "exported"), "owner/name");
  base_ = run_;
  EXPECT_EQ(run_mylos(train_words(directory_ / "on", {"--steps", "1"})).exit_code, 0);
  EXPECT_EQ(base_in(directory_ / "on" / "best"), "owner/name");
}

/// A path from the adapter on looks like a name of the hub.
TEST_F(LoraRuns, NameABaseBesideThemByItsDirectory) {
  train_adapters();
  const fs::path adapter = directory_ / "adapter", base = directory_ / "sub" / "base";
  fs::create_directory(directory_ / "sub");
  fs::rename(base_, base);
  fs::copy(run_ / "best", adapter);
  json config = read_json(adapter / "adapter_config.json");
  config["base_model_name_or_path"] = "sub/base";
  write_file(adapter / "adapter_config.json", config.dump());
  base_ = adapter;
  const ProgramRun run = run_mylos(train_words(directory_ / "on", {"--steps", "1"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_json(directory_ / "on" / "best" / "adapter_config.json")["base_model_name_or_path"], base.string());
}

TEST_F(LoraRuns, AreFoundByTheirNameInTheHubsCache) {
  train_adapters();
  const EnvironmentVariable cache("HF_HUB_CACHE", (directory_ / "hub").string());
  const fs::path repository = directory_ / "hub" / "models--me--ad";
  fs::create_directories(repository / "snapshots");
  fs::copy(run_ / "best", repository / "snapshots" / "abc");
  write_file(repository / "refs" / "main", "abc");
  const json expected = scores(run_);
  EXPECT_EQ(scores("me/ad"), expected);
  EXPECT_EQ(scores(base_, {"--adapter", "me/ad"}), expected);
}

/// The disk has no room for the model.
TEST_F(LoraRuns, WriteNoMoreThanAdapters) {
  const fs::path disk = directory_ / "disk";
  const std::size_t kibibytes = 56;  // less than three copies of the model
  const Words whole = {"--steps", "1", "--checkpoint-every", "never"}, adapter = joined(whole, {"--lora-rank", "1"});
  const auto run = run_on_small_disk(disk, kibibytes, "\"$@\"", train_words(disk / "out", adapter));
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 0) << run->errors;
  expect_refused(*run_on_small_disk(disk, kibibytes, "\"$@\"", train_words(disk / "out", whole)), "are needed, but");
}

}  // namespace
}  // namespace mylos::tests
