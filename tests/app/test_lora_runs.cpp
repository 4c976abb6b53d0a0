#include "data/huggingface/safetensors.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/data/tokenizer/letters_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// Runs of adapters (LoRA) through the program: training, resumption, exports, merging, and what is refused.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
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

/// Expects one line with the error, without more lines that look like one.
void expect_refused(const ProgramRun& run, const std::string& what, int exit_code = 1) {
  EXPECT_EQ(run.exit_code, exit_code) << what << "\n" << run.errors;
  Words lines = run.error_lines();
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("mylos: error: "); });
  ASSERT_EQ(lines.size(), 1u) << what << "\n" << run.errors;
  EXPECT_THAT(lines[0], HasSubstr(what));
}

/// A small Llama with weights and a tokenizer of the letters a and b, documents, and the options of its adapters.
class LoraRuns : public TinyRun, protected RankLauncher {
 protected:
  LoraRuns() : TinyRun(llama_family()) {}
  void SetUp() override {
    TinyRun::SetUp();
    write_file(model_ / "tokenizer.model", letters_model());
    write_file(dev_, tiny_documents(5));
    const ProgramRun run = run_mylos({"train", "--model", model_, "--train", train_, "--output", directory_ / "first",
                                      "--steps", "2", "--batch", "4", "--lr", "1e-2", "--gemm", default_provider()});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    fs::rename(directory_ / "first" / "best", base_);
  }

  Words train_words(const fs::path& output, const Words& more = {}) const {
    return joined({"train", "--model", base_, "--train", train_, "--dev", dev_, "--output", output, "--batch", "4",
                   "--lr", "1e-2", "--schedule", "constant", "--gemm", default_provider()},
                  more);
  }
  ProgramRun train(const Words& more) const { return run_mylos(train_words(run_, more)); }
  /// Trains run_ with adapters for 4 steps, with checkpoints.
  void train_adapters(const Words& more = {}) const {
    const ProgramRun run = train(joined({"--lora-rank", "2", "--steps", "4", "--checkpoint-every", "2"}, more));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
  }
  /// Returns what eval prints with `model` and `more` options.
  json scores(const fs::path& model, const Words& more = {}) const {
    const ProgramRun run = run_mylos(
        joined({"eval", "--model", model, "--data", dev_, "--output", directory_ / "scores", "--overwrite"}, more));
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.output);
  }

  fs::path base_ = directory_ / "base", merged_ = directory_ / "merged";
};

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
  train_adapters({"--lora-targets", "q,v,down", "--lora-rslora"});
  for (const char* name : {"best", "last"}) {
    EXPECT_THAT(names_in(run_ / name), UnorderedElementsAre("adapter_config.json", "adapter_model.safetensors"));
  }
  EXPECT_EQ(read_json(run_ / "best/adapter_config.json")["base_model_name_or_path"], base_.string());
  const fs::path exported = directory_ / "exported";
  ASSERT_EQ(run_mylos({"checkpoint", "export", run_, "--output", exported}).exit_code, 0);
  for (const std::string& name : names_in(run_ / "last")) {
    EXPECT_TRUE(read_file(exported / name) == read_file(run_ / "last" / name)) << name;
  }
  ASSERT_EQ(run_mylos({"merge", "--model", run_ / "last", "--output", merged_}).exit_code, 0);
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
  Words words = train_words(run_, {"--lora-rank", "2", "--steps", "2", "--modes", "replicated,sharded", "--ranks",
                                   "1,2", "--repeats", "1", "--json"});
  words.front() = "compare";
  const ProgramRun run = run_mylos(words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json lines = json::parse(run.output);
  ASSERT_EQ(lines.size(), 8u);  // each of the adapters, and of the whole model
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

class BadAdapters : public LoraRuns {
 protected:
  void SetUp() override {
    LoraRuns::SetUp();
    train_adapters();
    fs::copy(run_ / "best", adapter_);
  }

  /// Expects that train, eval and merge refuse the directory, and restores it.
  void expect_refused_by_all(const std::string& what) const {
    expect_refused(run_mylos(train_words(output_, {"--adapter", adapter_, "--steps", "1"})), what);
    expect_refused(run_mylos({"eval", "--model", adapter_, "--data", dev_, "--output", directory_ / "scores"}), what);
    expect_refused(run_mylos({"merge", "--model", base_, "--adapter", adapter_, "--output", merged_}), what);
    EXPECT_FALSE(fs::exists(output_ / "best"));
    EXPECT_FALSE(fs::exists(merged_));
    fs::copy(run_ / "best", adapter_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  void expect_refused_with(const std::string& key, const json& value, const std::string& what) const {
    json config = read_json(adapter_ / "adapter_config.json");
    config[key] = value;
    write_file(adapter_ / "adapter_config.json", config.dump());
    expect_refused_by_all("adapter_config.json: " + what);
  }

  fs::path adapter_ = directory_ / "adapter", output_ = directory_ / "output";
};

TEST_F(BadAdapters, WithOtherSettings) {
  expect_refused_with("r", 0, "r = 0 is not a whole number from 1 to ");
  expect_refused_with("r", 17, "r 17 of model.layers.0.self_attn.q_proj is above 16, the smaller side of its weight");
  expect_refused_with("target_modules", {"gone"}, "target_modules \"gone\" matches no module; the linear modules of");
  expect_refused_with("modules_to_save", {"gone"}, "modules_to_save \"gone\" is no module of this model");
  expect_refused_with("rank_pattern", {{"gone", 2}}, "rank_pattern \"gone\" matches no module with an adapter");
  expect_refused_with("use_dora", true, "use_dora = true is not supported; it must be false");
}

TEST_F(BadAdapters, OfAnotherModel) {
  write_tiny_llama(directory_ / "other", {.hidden = 8});
  const fs::path file = adapter_ / "adapter_config.json";
  json config = read_json(file);
  config["base_model_name_or_path"] = (directory_ / "other").string();
  write_file(file, config.dump());
  const std::string other = "adapter_config.json: its base is " + (directory_ / "other").string() + ", and " +
                            base_.string() + " is another model; give the base with --model";
  expect_refused(run_mylos({"merge", "--model", base_, "--adapter", adapter_, "--output", merged_}), other);
  config.erase("base_model_name_or_path");
  write_file(file, config.dump());
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", merged_}),
                 "base_model_name_or_path names no model; give it as --model");
  fs::copy(base_ / "model.safetensors", directory_ / "other");
  expect_refused(run_mylos({"merge", "--model", directory_ / "other", "--adapter", adapter_, "--output", merged_}),
                 "q_proj.lora_A.weight\" has shape (2, 16), the model of adapter_config.json needs (2, 8)");
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

TEST_F(BadAdapters, WithOtherTensors) {
  const fs::path file = adapter_ / "adapter_model.safetensors";
  const std::string bytes = read_file(file), tensor = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  const auto renamed = [&](const std::string& name) {
    std::string changed = bytes;
    return changed.replace(changed.find(tensor), tensor.size(), name);
  };
  write_file(file, bytes.substr(0, bytes.size() - 8));
  if (!mpiexec().empty()) {
    const ProgramRun run =
        run_on(2, train_words(output_, {"--adapter", adapter_, "--steps", "1", "--mode", "sharded"}));
    expect_refused(run, "adapter_model.safetensors: tensor \"base_model.model.model.layers.1.self_attn.v_proj.lora_B");
  }
  expect_refused_by_all("adapter_model.safetensors: tensor \"base_model.model.model.layers.1.self_attn.v_proj.lora_B");
  std::string other = tensor;
  write_file(file, renamed(other.replace(other.find("q_proj"), 6, "x_proj")));
  expect_refused_by_all("lack 1 of 8 tensors: model.layers.0.self_attn.q_proj.lora_A.weight");
  other.replace(other.find("x_proj"), 6, "v_proj");
  write_file(file, renamed(other));
  expect_refused_by_all("comes twice");
  fs::remove(file);
  expect_refused_by_all("has no adapter_model.safetensors");
}

TEST_F(BadAdapters, OfOptions) {
  const auto refuse = [&](const Words& more, const std::string& what, int exit_code = 1) {
    expect_refused(run_mylos(train_words(output_, joined({"--steps", "1"}, more))), what, exit_code);
  };
  refuse({"--lora-rank", "17"}, "--lora-rank 17 of model.layers.0.self_attn.q_proj is above 16");
  refuse({"--lora-rank", "2", "--lora-targets", "q,gone"}, "--lora-targets \"gone\" matches no module; the linear");
  refuse({"--lora-rank", "2", "--lora-targets", ".*gone"}, "--lora-targets \".*gone\" matches no module; the linear");
  refuse({"--lora-rank", "2", "--lora-targets", "q,all-linear"}, "--lora-targets q,all-linear: expected names", 2);
  refuse({"--lora-rank", "2", "--lora-targets", "q,"}, "--lora-targets q,: expected names separated by commas", 2);
  refuse({"--lora-rank", "2", "--lora-train", "gone"}, "--lora-train \"gone\" is no module of this model");
  refuse({"--lora-rank", "2", "--adapter", adapter_}, "--lora-rank and --adapter exclude each other", 2);
  refuse({"--lora-rank", "2", "--freeze", "body"}, "--lora-rank and --freeze exclude each other", 2);
  refuse({"--adapter", adapter_, "--freeze", "body"}, "--adapter and --freeze exclude each other", 2);
  refuse({"--lora-alpha", "4"},
         "--lora-alpha needs --lora-rank: only new adapters take it, and those of --adapter have their own in "
         "adapter_config.json",
         2);
  refuse({"--lora-rank", "2", "--lora-alpha", "1e30"}, "--lora-alpha 1e30: expected a number above 0 and below 1e+30",
         2);
  refuse({"--lora-targets", "k"}, "--lora-targets needs --lora-rank: only new adapters take it", 2);
  refuse({"--adapter", base_}, "--adapter " + base_.string() + ": neither an adapter (no adapter_config.json) nor");
  Words words = train_words(output_, {"--steps", "1", "--lora-rank", "2"});
  std::ranges::replace(words, base_.string(), adapter_.string());
  expect_refused(run_mylos(words), "is an adapter, which excludes --lora-rank; give its base as --model", 2);
  std::ranges::replace(words, adapter_.string(), model_.string());
  expect_refused(run_mylos(words), model_.string() + ": has no weights");
  expect_refused(run_mylos({"merge", "--model", base_, "--output", output_}), "merge needs --adapter", 2);
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", run_}), "already exists; choose a new directory");
}

TEST_F(BadAdapters, OfAdaptersAndOfTiedEmbeddings) {
  const fs::path file = adapter_ / "adapter_config.json";
  json config = read_json(file);
  config["base_model_name_or_path"] = adapter_.string();
  write_file(file, config.dump());
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", merged_}), "is an adapter; merge that one first");
  json sizes = read_json(base_ / "config.json");
  sizes["tie_word_embeddings"] = true;
  write_file(base_ / "config.json", sizes.dump());
  expect_refused(run_mylos(train_words(output_, {"--steps", "1", "--lora-rank", "2", "--lora-train", "embed_tokens"})),
                 "model.embed_tokens.weight is also the weight of the output layer (tied embeddings)");
}

/// The settings of an adapter are in its directory, and not in the run's.
TEST_F(BadAdapters, ChangedBeforeARunGoesOn) {
  const Words words = train_words(output_, {"--adapter", adapter_, "--checkpoint-every", "1", "--steps"});
  ASSERT_EQ(run_mylos(joined(words, {"1"})).exit_code, 0);
  json config = read_json(adapter_ / "adapter_config.json");
  config["lora_alpha"] = 40;
  write_file(adapter_ / "adapter_config.json", config.dump());
  expect_refused(run_mylos(joined(words, {"2", "--extend"})),
                 "or the settings of the adapters are others; restore them");
}

TEST_F(BadAdapters, MovedBeforeARunGoesOn) {
  const Words first = {"--adapter", adapter_, "--checkpoint-every", "1", "--steps", "1"};
  ASSERT_EQ(run_mylos(train_words(output_, first)).exit_code, 0);
  const Words steps = {"--checkpoint-every", "1", "--extend", "--steps"};
  const fs::path moved = directory_ / "moved";
  fs::rename(adapter_, moved);
  const ProgramRun run = run_mylos(train_words(output_, joined({"--adapter", moved}, joined(steps, {"2"}))));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 1, from "));
  json config = read_json(moved / "adapter_config.json");
  config["lora_alpha"] = 40;
  write_file(moved / "adapter_config.json", config.dump());
  expect_refused(run_mylos(train_words(output_, joined({"--adapter", moved}, joined(steps, {"3"})))),
                 "or the settings of the adapters are others; restore them");
  expect_refused(run_mylos(train_words(output_, joined(steps, {"3"}))), "with other options: adapter ", 2);
  // A run without --adapter does not get one.
  expect_refused(run_mylos(train_words(directory_ / "first", joined({"--adapter", moved}, joined(steps, {"3"})))),
                 "with other options: model ", 2);
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

/// Also on two ranks, which end.
TEST_F(BadAdapters, OfARunThatGoesOn) {
  const auto refuse = [&](const Words& more, const std::string& what, int exit_code, bool on_ranks = false) {
    const Words words = train_words(run_, joined({"--steps", "6", "--extend", "--checkpoint-every", "2"}, more));
    expect_refused(run_mylos(words), what, exit_code);
    if (on_ranks && !mpiexec().empty()) expect_refused(run_on(2, words), what, exit_code);
  };
  refuse({"--lora-rank", "3"}, "with other options: lora-rank 2, now 3;", 2, true);
  refuse({"--lora-rank", "2", "--lora-alpha", "1"}, "with other options: lora-alpha unset, now 1.0;", 2);
  refuse({}, "with other options: lora-rank 2, now unset; lora-targets q,v, now unset;", 2);
  const fs::path weights = base_ / "model.safetensors";
  const std::string bytes = read_file(weights);
  std::string changed = bytes;
  changed[changed.size() - 2] ^= 1;
  write_file(weights, changed);
  refuse({"--lora-rank", "2"}, "its adapters belong to the model in " + base_.string() + ", and the weights in ", 1,
         true);
  fs::rename(base_, directory_ / "moved");
  refuse({"--lora-rank", "2"}, "no directory " + base_.string(), 1);
  expect_refused(run_mylos({"eval", "--model", run_, "--data", dev_, "--output", output_}),
                 "adapter_config.json: its base is not here: no directory " + base_.string());
  const std::string before = base_.string();
  base_ = directory_ / "moved";
  refuse({"--lora-rank", "2"}, "the model in " + before + ", and the weights in " + base_.string(), 1);
  write_file(base_ / "model.safetensors", bytes);
  const ProgramRun run = train({"--lora-rank", "2", "--steps", "6", "--extend", "--checkpoint-every", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_json(run_ / "last" / "adapter_config.json")["base_model_name_or_path"], base_.string());
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

/// A checkpoint knows its base, and a sum that is not finite is no model. Leftovers of a killed export go.
TEST_F(BadAdapters, AreNotMerged) {
  const fs::path output = directory_ / "merged", other = directory_ / "other",
                 killed = directory_ / "merged-adapter.partial-0123456789abcdef";
  fs::copy(base_, other);
  std::string bytes = read_file(other / "model.safetensors");
  bytes[bytes.size() - 2] ^= 1;
  write_file(other / "model.safetensors", bytes);
  const Words merge = {"checkpoint", "export", run_, "--merge", "--output", output};
  expect_refused(run_mylos(joined(merge, {"--model", other})), "its adapters belong to the model in " + base_.string() +
                                                                   ", and the weights in " + other.string() +
                                                                   " are others");
  fs::create_directory(killed);
  EXPECT_EQ(run_mylos(merge).exit_code, 0);
  EXPECT_FALSE(fs::exists(killed));

  bytes = read_file(adapter_ / "adapter_model.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\x7f", 4);
  write_file(adapter_ / "adapter_model.safetensors", bytes);
  expect_refused(run_mylos({"merge", "--model", adapter_, "--output", directory_ / "nan"}),
                 "is not finite with the adapter in");
  expect_refused(run_mylos({"eval", "--model", adapter_, "--data", dev_, "--output", directory_ / "scores"}),
                 "the model's outputs are not finite");
}

TEST_F(BadAdapters, MergedOnAFullDisk) {
  for (const Words& words : {Words{"merge", "--model", adapter_}, Words{"checkpoint", "export", run_, "--merge"}}) {
    const fs::path disk = directory_ / words[0];
    const auto run = run_on_small_disk(disk, 16, R"("$@"; code=$?; ls -A "$disk"; exit $code)",
                                       joined(words, {"--output", disk / "out"}));
    if (!run) GTEST_SKIP() << "this user may not mount a file system";
    expect_refused(*run, "No space left on device");
    EXPECT_EQ(run->output, "") << words[0];
  }
}

}  // namespace
}  // namespace mylos::tests
