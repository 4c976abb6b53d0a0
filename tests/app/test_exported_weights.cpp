#include "data/huggingface/safetensors.hpp"
#include "data/huggingface/weight_files_writer.hpp"
#include "tests/app/rank_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// The types of the weights that runs write, and weights in shards.
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
  const data::SafetensorsFile file(FileReader(), model / "model.safetensors");
  std::set<std::string> types;
  for (const data::TensorInfo& tensor : file.tensors()) types.insert(tensor.type);
  return types.size() == 1 ? *types.begin() : "several";
}

class ExportedWeights : public EvaluatedRun {
 protected:
  void SetUp() override {
    EvaluatedRun::SetUp();
    write_tiny_llama(language_model_);
    write_file(documents_, "{\"input_ids\": [5, 6, 7]}\n{\"input_ids\": [7, 8, 9, 3]}\n");
  }

  ProgramRun train_on_documents(const fs::path& model, const fs::path& output, const Words& more = {}) const {
    return run_mylos(joined({"train", "--model", model, "--train", documents_, "--output", output, "--steps", "2",
                             "--batch", "2", "--gemm", default_provider()},
                            more));
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
  const fs::path exported = directory_ / "exported";
  ASSERT_EQ(run_mylos({"checkpoint", "export", first, "--output", exported}).exit_code, 0);
  expect_written(exported, "BF16", "bfloat16");
  ASSERT_EQ(train_on_documents(first, run_, {"--precision", "half"}).exit_code, 0);
  expect_written(run_ / "last", "BF16", "bfloat16");
  ASSERT_EQ(train_on_documents(first, directory_ / "float").exit_code, 0);
  expect_written(directory_ / "float/last", "F32", "float32");
}

TEST_F(ExportedWeights, OfACheckpointFollowTheRunOrTheOption) {
  ASSERT_EQ(train_on_documents(language_model_, run_, {"--checkpoint-every", "1"}).exit_code, 0);
  const auto exported = [&](const Words& more) {
    Words words = joined({"checkpoint", "export", run_, "--output", directory_ / "exported"}, more);
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

/// A Llama with weights in two shards.
class ShardedWeights : public RankRuns {
 protected:
  ShardedWeights() : RankRuns(llama_family()) {}
  void SetUp() override {
    RankRuns::SetUp();
    if (IsSkipped()) return;
    const ProgramRun run = train_on(1, model_, first_);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const data::SafetensorsFile file(FileReader(), first_ / "best/model.safetensors");
    std::vector<data::TensorShape> shapes;
    for (const data::TensorInfo& tensor : file.tensors()) shapes.push_back({tensor.name, tensor.shape});
    fs::create_directories(shards_);
    fs::copy_file(first_ / "best/config.json", shards_ / "config.json");
    data::WeightFilesWriter writer(shards_, shapes, {.shard_bytes = 12'000});
    for (const data::TensorShape& tensor : shapes) writer.write(file.read_float(tensor.name));
    writer.commit();
    ASSERT_TRUE(fs::exists(second_));
  }

  ProgramRun train_on(std::size_t ranks, const fs::path& model, const fs::path& output) const {
    return run_on(ranks, train_words(output, {"--model", model, "--steps", "2", "--mode", "sharded"}));
  }
  /// Expects that a run on two ranks rejects the directory with one line, and writes nothing.
  template <class Matcher>
  void expect_refused(const Matcher& message) {
    const fs::path output = directory_ / "refused";
    const ProgramRun run = train_on(2, shards_, output);
    EXPECT_EQ(run.exit_code, 1) << run.errors;
    EXPECT_THAT(run.errors, message);
    const std::size_t first = run.errors.find("error: ");
    ASSERT_NE(first, std::string::npos) << run.errors;
    EXPECT_EQ(run.errors.find("error: ", first + 1), std::string::npos) << run.errors;
    EXPECT_FALSE(fs::exists(output / "last"));
  }

  fs::path first_ = directory_ / "first", shards_ = directory_ / "shards",
           second_ = shards_ / "model-00002-of-00002.safetensors";
};

TEST_F(ShardedWeights, TrainAsTheWholeFileDoesOnAnyNumberOfRanks) {
  const fs::path one = directory_ / "one", two = directory_ / "two", file = directory_ / "file";
  const ProgramRun run = train_on(1, shards_, one);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Not(HasSubstr("is initialised")));
  ASSERT_EQ(train_on(1, first_, file).exit_code, 0);
  EXPECT_EQ(read_file(one / "last/model.safetensors"), read_file(file / "last/model.safetensors"));
  ASSERT_EQ(train_on(2, shards_, two).exit_code, 0);
  const data::SafetensorsFile of_one(FileReader(), one / "last/model.safetensors"),
      of_two(FileReader(), two / "last/model.safetensors");
  for (const data::TensorInfo& tensor : of_one.tensors()) {
    const std::vector<float> a = of_one.read_float(tensor.name), b = of_two.read_float(tensor.name);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << tensor.name;
  }
}

/// The messages are those of WeightFiles and Pretrained. Of several ranks one prints them.
TEST_F(ShardedWeights, ADamagedOneIsNamedOnce) {
  json config = read_json(shards_ / "config.json");
  config["vocab_size"] = 30;
  const std::string whole = read_file(shards_ / "config.json");
  write_file(shards_ / "config.json", config.dump());
  expect_refused(AllOf(HasSubstr("tensor \"model.embed_tokens.weight\" has shape (29, 16)"),
                       HasSubstr("the model of config.json needs (30, 16)")));
  write_file(shards_ / "config.json", whole);
  fs::resize_file(second_, fs::file_size(second_) - 5);
  expect_refused(AllOf(HasSubstr("model-00002-of-00002.safetensors: tensor \""), HasSubstr("it was cut short")));
}

}  // namespace
}  // namespace mylos::tests
