#include "data/huggingface/safetensors.hpp"
#include "data/huggingface/weight_files_writer.hpp"
#include "tests/app/rank_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// The types of the weights that runs write, and weight shards that they reject, on one rank and on several.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// Returns the type of the weights in a directory, which must be the same for all.
std::string type_of(const fs::path& model) {
  const data::SafetensorsFile file(model / "model.safetensors");
  std::set<std::string> types;
  for (const data::TensorInfo& tensor : file.tensors()) types.insert(tensor.type);
  return types.size() == 1 ? *types.begin() : "several";
}

class ExportedWeights : public EvaluatedRun {
 protected:
  void SetUp() override {
    EvaluatedRun::SetUp();
    write_file(language_model_ / "config.json", R"({"model_type": "llama", "vocab_size": 29, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2})");
    write_file(documents_, "{\"input_ids\": [5, 6, 7]}\n{\"input_ids\": [7, 8, 9, 3]}\n");
  }

  ProgramRun train_on_documents(const fs::path& model, const fs::path& output, const Words& more = {}) const {
    Words words = {"train",   "--model", model,     "--train", documents_, "--output",        output,
                   "--steps", "2",       "--batch", "2",       "--gemm",   default_provider()};
    words.insert(words.end(), more.begin(), more.end());
    return run_mylos(words);
  }
  void expect_written(const fs::path& model, const std::string& type, const std::string& dtype) const {
    EXPECT_EQ(type_of(model), type) << model;
    EXPECT_EQ(read_json(model / "config.json")["torch_dtype"], dtype) << model;
  }

  fs::path language_model_ = directory_ / "llama", documents_ = directory_ / "train.jsonl";
};

TEST_F(ExportedWeights, AreFloatUnlessToldOtherwise) {
  const ProgramRun run = train_on_documents(language_model_, run_, {"--precision", "bfloat16"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("has no weights: the model is initialised from Normal(0, 0.02) with --seed"));
  for (const char* name : {"best", "last"}) expect_written(run_ / name, "F32", "float32");
  const fs::path half = directory_ / "half";
  ASSERT_EQ(train_on_documents(language_model_, half, {"--export-precision", "half"}).exit_code, 0);
  for (const char* name : {"best", "last"}) expect_written(half / name, "F16", "float16");
}

TEST_F(ExportedWeights, KeepTheTypeOfTheFileThatA16BitRunBeganFrom) {
  const fs::path first = directory_ / "first";
  ASSERT_EQ(train_on_documents(language_model_, first, {"--export-precision", "bfloat16"}).exit_code, 0);
  expect_written(first / "best", "BF16", "bfloat16");
  ASSERT_EQ(train_on_documents(first, run_, {"--precision", "half"}).exit_code, 0);
  expect_written(run_ / "last", "BF16", "bfloat16");
  ASSERT_EQ(train_on_documents(first, directory_ / "float").exit_code, 0);
  expect_written(directory_ / "float/last", "F32", "float32");
}

TEST_F(ExportedWeights, OfACheckpointHaveTheTypeThatTheRunWasTold) {
  ASSERT_EQ(train_on_documents(language_model_, run_, {"--export-precision", "bfloat16"}).exit_code, 0);
  const fs::path exported = directory_ / "exported";
  ASSERT_EQ(run_mylos({"checkpoint", "export", run_, "--output", exported}).exit_code, 0);
  expect_written(exported, "BF16", "bfloat16");
}

TEST_F(ExportedWeights, OfACheckpointFollowTheRunOrTheOption) {
  ASSERT_EQ(train_on_documents(language_model_, run_, {"--checkpoint-every", "1"}).exit_code, 0);
  const auto exported = [&](const Words& more) {
    Words words = {"checkpoint", "export", run_, "--output", directory_ / "exported"};
    words.insert(words.end(), more.begin(), more.end());
    fs::remove_all(directory_ / "exported");
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return directory_ / "exported";
  };
  expect_written(exported({}), "F32", "float32");
  expect_written(exported({"--export-precision", "bf16"}), "BF16", "bfloat16");
  const fs::path sixteen = directory_ / "sixteen";
  ASSERT_EQ(train_on_documents(language_model_, sixteen,
                               {"--checkpoint-every", "1", "--precision", "bfloat16", "--export-precision", "half"})
                .exit_code,
            0);
  run_ = sixteen;
  expect_written(exported({}), "F16", "float16");
  const ProgramRun listed = run_mylos({"checkpoint", "list", run_, "--export-precision", "half"});
  EXPECT_EQ(listed.exit_code, 2);
  EXPECT_THAT(listed.errors, HasSubstr("checkpoint list has no --export-precision"));
}

TEST_F(ExportedWeights, OfABertToo) {
  const ProgramRun run = train(run_, {"--steps", "2", "--export-precision", "bfloat16"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  expect_written(run_ / "best", "BF16", "bfloat16");
  EXPECT_EQ(run_mylos({"ask", "--model", run_, "--context", train_, "what is q01?"}).exit_code, 0);
}

/// A Llama with weights in two shards. Each test damages one of them.
class ShardedWeights : public RankRuns {
 protected:
  void SetUp() override {
    RankRuns::SetUp();
    if (IsSkipped()) return;
    write_file(documents_, "{\"input_ids\": [5, 6, 7]}\n{\"input_ids\": [7, 8, 9, 3]}\n");
    write_file(whole_ / "config.json", R"({"model_type": "llama", "vocab_size": 29, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2})");
    const ProgramRun run = run_on(1, language_words(whole_, directory_ / "first"));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const fs::path best = directory_ / "first/best";
    const data::SafetensorsFile file(best / "model.safetensors");
    std::vector<data::TensorShape> shapes;
    for (const data::TensorInfo& tensor : file.tensors()) shapes.push_back({tensor.name, tensor.shape});
    fs::create_directories(shards_);
    fs::copy_file(best / "config.json", shards_ / "config.json");
    data::WeightFilesWriter writer(shards_, shapes, {.shard_bytes = 12'000});
    for (const data::TensorShape& tensor : shapes) writer.write(file.read_float(tensor.name));
    writer.commit();
    ASSERT_TRUE(fs::exists(shard(1)) && fs::exists(shard(2)));
    lost_ = data::SafetensorsFile(shard(2)).tensors().front().name;
  }

  Words language_words(const fs::path& model, const fs::path& output) const {
    return {"train",   "--model", model,    "--train", documents_, "--output",        output, "--steps", "2",
            "--batch", "2",       "--mode", "sharded", "--gemm",   default_provider()};
  }
  fs::path shard(int number) const {
    return shards_ / ("model-0000" + std::to_string(number) + "-of-00002.safetensors");
  }
  json index() const { return read_json(shards_ / "model.safetensors.index.json"); }
  void write_index(const json& index) const { write_file(shards_ / "model.safetensors.index.json", index.dump()); }

  /// Expects that runs on one rank and on two reject the directory with one line, and write nothing.
  template <class Matcher>
  void expect_refused(const Matcher& message) {
    for (const std::size_t ranks : {1, 2}) {
      const fs::path output = directory_ / "refused";
      const ProgramRun run = run_on(ranks, language_words(shards_, output));
      EXPECT_EQ(run.exit_code, 1) << ranks << " ranks: " << run.errors;
      EXPECT_THAT(run.errors, message) << ranks << " ranks";
      const std::size_t first = run.errors.find("error: ");
      ASSERT_NE(first, std::string::npos) << run.errors;
      EXPECT_EQ(run.errors.find("error: ", first + 1), std::string::npos) << run.errors;
      EXPECT_FALSE(fs::exists(output / "last"));
    }
  }

  fs::path documents_ = directory_ / "train.jsonl", whole_ = directory_ / "llama", shards_ = directory_ / "shards";
  std::string lost_;  ///< a tensor of the second shard
};

TEST_F(ShardedWeights, TrainAsTheWholeFileDoesOnAnyNumberOfRanks) {
  const fs::path one = directory_ / "one", two = directory_ / "two", file = directory_ / "file";
  const ProgramRun run = run_on(1, language_words(shards_, one));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Not(HasSubstr("is initialised")));
  ASSERT_EQ(run_on(1, language_words(directory_ / "first", file)).exit_code, 0);
  EXPECT_EQ(read_file(one / "last/model.safetensors"), read_file(file / "last/model.safetensors"));
  ASSERT_EQ(run_on(2, language_words(shards_, two)).exit_code, 0);
  const data::SafetensorsFile of_one(one / "last/model.safetensors"), of_two(two / "last/model.safetensors");
  for (const data::TensorInfo& tensor : of_one.tensors()) {
    const std::vector<float> a = of_one.read_float(tensor.name), b = of_two.read_float(tensor.name);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << tensor.name;
  }
}

TEST_F(ShardedWeights, AMissingOneIsNamed) {
  fs::remove(shard(2));
  expect_refused(AllOf(HasSubstr("model.safetensors.index.json: \""),
                       HasSubstr("is in model-00002-of-00002.safetensors, which does not exist; fetch it")));
}

TEST_F(ShardedWeights, ATruncatedOneIsNamed) {
  fs::resize_file(shard(2), fs::file_size(shard(2)) - 5);
  expect_refused(AllOf(HasSubstr("model-00002-of-00002.safetensors: tensor \""), HasSubstr("it was cut short")));
}

TEST_F(ShardedWeights, ATensorInTwoOfThemIsNamed) {
  fs::copy_file(shard(2), shards_ / "model-00003-of-00002.safetensors");
  json changed = index();
  changed["weight_map"][lost_] = "model-00003-of-00002.safetensors";
  write_index(changed);
  expect_refused(AllOf(HasSubstr("model-00002-of-00002.safetensors: tensor \"" + lost_ + "\" is also stored as"),
                       HasSubstr("in model-00003-of-00002.safetensors")));
}

TEST_F(ShardedWeights, AnIndexThatPointsOutsideIsRefused) {
  const std::vector<std::string> outside = {"../shards/model-00002-of-00002.safetensors", shard(2).string(), ".."};
  for (const std::string& file : outside) {
    json changed = index();
    changed["weight_map"][lost_] = file;
    write_index(changed);
    expect_refused(AllOf(HasSubstr("\"" + lost_ + "\" is in \"" + file + "\""),
                         HasSubstr("which is not a file's name in this directory")));
  }
}

TEST_F(ShardedWeights, AnIndexThatNamesATensorItsShardLacksIsRefused) {
  json changed = index();
  changed["weight_map"][lost_] = "model-00001-of-00002.safetensors";
  write_index(changed);
  expect_refused(
      HasSubstr("\"" + lost_ + "\" should be in model-00001-of-00002.safetensors, which has no such tensor"));
}

TEST_F(ShardedWeights, ATensorThatTheIndexDoesNotNameIsRefused) {
  json changed = index();
  changed["weight_map"].erase(lost_);
  write_index(changed);
  expect_refused(
      HasSubstr("model-00002-of-00002.safetensors: tensor \"" + lost_ + "\" is not in model.safetensors.index.json"));
}

TEST_F(ShardedWeights, AnotherTypeIsRefused) {
  std::string bytes = read_file(shard(2));
  const std::size_t location = bytes.find("\"F32\"", bytes.find(lost_));
  write_file(shard(2), bytes.replace(location, 5, "\"I32\""));
  expect_refused(AllOf(HasSubstr("model-00002-of-00002.safetensors: tensor \"" + lost_ + "\" has type I32"),
                       HasSubstr("weights are F32, BF16, F16 or F64")));
}

TEST_F(ShardedWeights, AnotherShapeIsRefused) {
  json config = read_json(shards_ / "config.json");
  config["vocab_size"] = 30;
  write_file(shards_ / "config.json", config.dump());
  expect_refused(AllOf(HasSubstr("tensor \"model.embed_tokens.weight\" has shape (29, 16)"),
                       HasSubstr("the model of config.json needs (30, 16)")));
}

}  // namespace
}  // namespace mylos::tests
