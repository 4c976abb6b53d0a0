#include "data/huggingface/pretrained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/wordpiece_files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

constexpr auto tiny_config = R"({"model_type":"bert","vocab_size":4,"hidden_size":2,"num_hidden_layers":1,
  "num_attention_heads":1,"intermediate_size":2,"max_position_embeddings":8})";

const std::vector<TensorSpec> wanted{{"bert.embeddings.LayerNorm.weight", {2}},
                                     {"bert.encoder.layer.0.output.dense.weight", {2, 2}},
                                     {"qa_outputs.bias", {2}, true}};

/// Tensors by name, with values that count up from 1.
class Tensors {
 public:
  Tensors& add(const std::string& name, std::vector<std::size_t> shape) {
    auto& values = values_[name];
    values.resize(element_count(shape, name));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
    tensors_.push_back({name, std::move(shape), values});
    return *this;
  }
  void write(const std::filesystem::path& path, Precision type = Precision::float32) const {
    write_safetensors(path, tensors_, type);
  }

 private:
  std::map<std::string, std::vector<float>> values_;
  std::vector<NamedTensor> tensors_;
};

Tensors whole() {
  Tensors tensors;
  tensors.add("bert.embeddings.LayerNorm.weight", {2}).add("bert.encoder.layer.0.output.dense.weight", {2, 2});
  return tensors;
}

/// Reads all values of a tensor.
std::vector<float> whole(const TensorReader& read, const TensorSpec& spec) {
  std::vector<float> values(element_count(spec.shape, spec.name));
  read(0, values);
  return values;
}

/// A model directory with these weights, read as `wanted` requests.
struct Loaded {
  explicit Loaded(const Tensors& tensors, Precision type = Precision::float32) {
    write_file(directory / "config.json", tiny_config);
    tensors.write(directory / "model.safetensors", type);
    message = error_of([&] {
      report =
          PretrainedModel(FileReader(), directory.path())
              .read_weights(FileReader(), wanted, families::bert_tensor_naming(),
                            [&](std::size_t row, const TensorReader& read) { values[row] = whole(read, wanted[row]); });
    });
  }
  TemporaryDirectory directory;
  std::map<std::size_t, std::vector<float>> values;
  WeightReport report;
  std::string message;
};

TEST(Pretrained, ReadsWantedTensorsAndReportsAMissingHead) {
  const Loaded loaded(whole());
  EXPECT_EQ(loaded.message, "(nothing was thrown)");
  ASSERT_EQ(loaded.values.size(), 2u);
  EXPECT_THAT(loaded.values.at(1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(loaded.report.missing, ElementsAre("qa_outputs.bias"));
  EXPECT_EQ(ignored_line(loaded.report, "question answering"), "");
}

/// As on the ranks that do not open the weights for this.
TEST(Pretrained, ThePrecisionMayBeACopy) {
  const Loaded loaded(whole(), Precision::bfloat16);
  const PretrainedModel model(FileReader(), loaded.directory.path());
  FileCopies copies;
  EXPECT_EQ(model.weights_precision(FileReader(copies, 0)), Precision::bfloat16);
  std::filesystem::remove(loaded.directory / "model.safetensors");
  EXPECT_THAT(error_of([&] { model.weights_precision(FileReader()); }), HasSubstr("has no model.safetensors"));
  EXPECT_EQ(model.weights_precision(FileReader(copies)), Precision::bfloat16);
}

TEST(Pretrained, WeightsThatAreNoFloatingPointNumbersAreNamedBeforeAnyIsRead) {
  const TemporaryDirectory directory;
  write_file(directory / "config.json", tiny_config);
  const std::string header =
      R"({"bert.embeddings.LayerNorm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("bert.encoder.layer.0.output.dense.weight":{"dtype":"I8","shape":[2,2],"data_offsets":[8,12]}})";
  const std::uint64_t size = header.size();
  write_file(directory / "model.safetensors",
             std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + std::string(12, '\0'));
  bool was_read = false;
  EXPECT_THAT(
      error_of([&] {
        PretrainedModel(FileReader(), directory.path())
            .read_weights(FileReader(), wanted, families::bert_tensor_naming(),
                          [&](std::size_t, const TensorReader&) { was_read = true; });
      }),
      EndsWith("model.safetensors: tensor \"bert.encoder.layer.0.output.dense.weight\" has type I8; weights are "
               "F32, BF16, F16 or F64"));
  EXPECT_FALSE(was_read);
}

TEST(Pretrained, UnderstandsLegacyAndBareNames) {
  Tensors tensors;
  tensors.add("embeddings.LayerNorm.gamma", {2}).add("encoder.layer.0.output.dense.weight", {2, 2});
  const Loaded loaded(tensors);
  EXPECT_EQ(loaded.message, "(nothing was thrown)");
  EXPECT_THAT(loaded.values.at(0), ElementsAre(1, 2));
}

/// Versions of transformers disagree which of the two counts.
TEST(Pretrained, ATiedHeadMustEqualTheEmbeddings) {
  const TemporaryDirectory directory;
  write_file(directory / "config.json", "{}");
  std::vector<float> embeddings(600'000, 0.5f), head = embeddings;
  const TensorNaming naming{.model = "a Llama", .copy = "lm_head.weight", .copied = "embed.weight"};
  const auto message = [&](std::vector<std::size_t> shape) {
    const std::vector<NamedTensor> tensors{{"embed.weight", {600, 1000}, embeddings},
                                           {"lm_head.weight", std::move(shape), head}};
    write_safetensors(directory / "model.safetensors", tensors, Precision::bfloat16);
    return error_of([&] {
      const std::vector<TensorSpec> specs{{"embed.weight", {600, 1000}}};
      const WeightReport report = PretrainedModel(FileReader(), directory.path())
                                      .read_weights(FileReader(), specs, naming, [](std::size_t, const auto&) {});
      EXPECT_THAT(report.ignored, ElementsAre("lm_head.weight"));
    });
  };
  EXPECT_EQ(message({600, 1000}), "(nothing was thrown)");
  // One process compares for those that use its copies.
  FileCopies copies;
  const auto read_headers = [&] {
    PretrainedModel(FileReader(), directory.path()).read_weight_headers(FileReader(copies, 1 << 20), naming);
  };
  read_headers();
  EXPECT_TRUE(FileReader(copies).has_values(directory / "embed.weight"));
  head.back() = 0.75f;
  const std::string refusal = "the weights in " + directory.path().string() +
                              ": lm_head.weight differs from embed.weight, and config.json ties them; set "
                              "tie_word_embeddings to false to use it, or remove it";
  EXPECT_EQ(message({600, 1000}), refusal);
  copies = {};
  EXPECT_EQ(error_of(read_headers), refusal);
  head = embeddings;
  EXPECT_EQ(message({1000, 600}), refusal);
}

TEST(Pretrained, HeadsForOtherTasksAreIgnoredInOneLine) {
  auto tensors = whole();
  tensors.add("cls.predictions.bias", {4})
      .add("pooler.dense.weight", {2, 2})
      .add("bert.embeddings.position_ids", {1, 8});
  const Loaded loaded(tensors);
  EXPECT_EQ(loaded.message, "(nothing was thrown)");
  EXPECT_EQ(ignored_line(loaded.report, "question answering"),
            "3 tensors not used for question answering are ignored: bert.embeddings.position_ids, pooler.dense.weight, "
            "cls.predictions.bias");
}

TEST(Pretrained, ExtraTensorsAreNamed) {
  auto tensors = whole();
  for (int i = 0; i < 10; ++i) tensors.add("adapter." + std::to_string(i), {1});
  const Loaded loaded(tensors);
  EXPECT_THAT(loaded.message,
              HasSubstr(" have 10 tensors that a BERT of this config.json does not: adapter.0, adapter.1, "));
  EXPECT_TRUE(loaded.message.ends_with("adapter.7 and 2 more"));
  EXPECT_TRUE(loaded.values.empty());
}

TEST(Pretrained, MissingTensorsAreNamed) {
  Tensors tensors;
  tensors.add("qa_outputs.bias", {2}).add("bert.embeddings.LayerNorm.weight", {2});
  EXPECT_THAT(Loaded(tensors).message, HasSubstr(" lack 1 of 3 tensors: bert.encoder.layer.0.output.dense.weight"));
}

TEST(Pretrained, WrongShapesShowBoth) {
  Tensors tensors;
  tensors.add("bert.embeddings.LayerNorm.gamma", {2}).add("bert.encoder.layer.0.output.dense.weight", {2, 3});
  EXPECT_THAT(Loaded(tensors).message,
              HasSubstr("model.safetensors: tensor \"bert.encoder.layer.0.output.dense.weight\" has "
                        "shape (2, 3), the model of config.json needs (2, 2)"));
}

TEST(Pretrained, AbsentFilesAreNamed) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { PretrainedModel model(FileReader(), directory.path()); }),
            "cannot read " + (directory / "config.json").string() + ": No such file or directory");
  write_file(directory / "config.json", "[1]");
  EXPECT_EQ(error_of([&] { PretrainedModel model(FileReader(), directory.path()); }),
            (directory / "config.json").string() + ": not a JSON object");
}

TEST(Pretrained, WhatIsWrittenReadsBack) {
  const TemporaryDirectory directory;
  const families::WordPieceFiles tokenizer{
      "[PAD]\n[UNK]\n", "{}", {.do_lower_case = false, .strip_accents = false, .tokenize_chinese_chars = true}};
  const auto config = families::read_bert_config({parse_json(tiny_config, "config"), "config"});
  const auto files = families::wordpiece_model_files(tokenizer, config.positions);
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector<NamedTensor> weights{{wanted[0].name, {2}, std::span(values).first(2)},
                                         {wanted[1].name, {2, 2}, values},
                                         {wanted[2].name, {2}, std::span(values).last(2)}};
  write_file(directory / "best/stale.txt", "of the model before");
  write_file(directory / "best.partial-deadbeef/half", "of a killed run");
  write_pretrained(directory / "best", families::bert_config_json(config), files, weights);
  EXPECT_FALSE(std::filesystem::exists(directory / "best/stale.txt"));
  EXPECT_FALSE(std::filesystem::exists(directory / "best.partial-deadbeef"));
  const PretrainedModel model(FileReader(), directory / "best");
  EXPECT_EQ(families::read_bert_config(model), config);
  const families::WordPieceFiles read = families::read_wordpiece_files(FileReader(), model.directory());
  EXPECT_FALSE(read.options.do_lower_case);
  EXPECT_EQ(read.options.strip_accents, false);
  EXPECT_EQ(read.vocabulary, tokenizer.vocabulary);
  EXPECT_EQ(read.tokenizer_json, "{}");
  std::map<std::size_t, std::vector<float>> back;
  const auto report =
      model.read_weights(FileReader(), wanted, families::bert_tensor_naming(),
                         [&](std::size_t row, const TensorReader& read) { back[row] = whole(read, wanted[row]); });
  EXPECT_TRUE(report.missing.empty());
  EXPECT_THAT(back.at(1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(back.at(2), ElementsAre(3, 4));
}

/// Writes a family that the engine does not know: unsorted keys, weights in two shards, and a tokenizer of its own.
void write_toy_model(const std::filesystem::path& directory) {
  write_file(directory / "config.json", R"({"zeta":1e-05,"model_type":"toy","alpha":{"b":[1,2.5,null],"a":"\u00e9"},
    "beta":false,"large":18446744073709551615})");
  Tensors first, second;
  first.add("toy.gate.weight", {2, 3});
  second.add("toy.bias", {3}).add("toy.inverse_frequencies", {1});
  first.write(directory / "model-00001-of-00002.safetensors");
  second.write(directory / "model-00002-of-00002.safetensors", Precision::bfloat16);
  write_file(directory / "model.safetensors.index.json",
             R"({"weight_map":{"toy.gate.weight":"model-00001-of-00002.safetensors",
    "toy.bias":"model-00002-of-00002.safetensors","toy.inverse_frequencies":"model-00002-of-00002.safetensors"}})");
  write_file(directory / "toy.model", std::string("\0\xff\r\nbytes\0", 10));
}

TEST(Pretrained, AModelOfAnyFamilyIsReadAndWrittenBack) {
  const TemporaryDirectory directory;
  write_toy_model(directory / "toy");
  const PretrainedModel model(FileReader(), directory / "toy");
  EXPECT_EQ(model.model_type(), "toy");
  constexpr std::string_view names[] = {"toy.model", "absent.json"};
  const auto files = model.read_files(FileReader(), names);
  ASSERT_EQ(files.size(), 1u);
  const TensorNaming naming{.model = "a toy",
                            .is_ignored = [](std::string_view name) { return name == "toy.inverse_frequencies"; }};
  const std::vector<TensorSpec> specs{{"toy.bias", {3}}, {"toy.gate.weight", {2, 3}}};
  std::vector<std::vector<float>> values(2);
  const auto report = model.read_weights(FileReader(), specs, naming, [&](std::size_t row, const TensorReader& read) {
    values[row] = whole(read, specs[row]);
  });
  EXPECT_THAT(values[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(values[1], ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(ignored_line(report, "play"), "1 tensor not used for play is ignored: toy.inverse_frequencies");

  auto config = model.config();
  config["torch_dtype"] = "float32";
  write_pretrained(directory / "best", config, files,
                   std::vector<NamedTensor>{{"toy.bias", {3}, values[0]}, {"toy.gate.weight", {2, 3}, values[1]}});
  EXPECT_EQ(tests::read_file(directory / "best/config.json"),
            "{\n  \"zeta\": 1e-05,\n  \"model_type\": \"toy\",\n  \"alpha\": {\n    \"b\": [\n      1,\n      2.5,\n"
            "      null\n    ],\n    \"a\": \"\u00e9\"\n  },\n  \"beta\": false,\n  \"large\": 18446744073709551615,\n"
            "  \"torch_dtype\": \"float32\"\n}\n");
  EXPECT_EQ(tests::read_file(directory / "best/toy.model"), tests::read_file(directory / "toy/toy.model"));
  EXPECT_EQ(SafetensorsFile(FileReader(), directory / "best/model.safetensors").read_float("toy.bias"), values[0]);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory / "best"), {}), 3);
}

/// As transformers does. A tensor that the model needs, or does not know, is still an error.
TEST(Pretrained, AnIgnoredTensorNeedsNoPlaceInTheIndex) {
  const TemporaryDirectory directory;
  write_toy_model(directory / "toy");
  const auto error_for_index = [&](const char* rows, const TensorNaming& naming, std::vector<std::string>& ignored) {
    write_file(directory / "toy/model.safetensors.index.json", std::string("{\"weight_map\":{") + rows + "}}");
    const std::vector<TensorSpec> specs{{"toy.bias", {3}}, {"toy.gate.weight", {2, 3}}};
    return error_of([&] {
      ignored = PretrainedModel(FileReader(), directory / "toy")
                    .read_weights(FileReader(), specs, naming, [](auto&&...) {})
                    .ignored;
    });
  };
  const TensorNaming naming{.model = "a toy",
                            .is_ignored = [](std::string_view name) { return name == "toy.inverse_frequencies"; }};
  constexpr auto both = R"("toy.gate.weight":"model-00001-of-00002.safetensors",
                           "toy.bias":"model-00002-of-00002.safetensors")";
  std::vector<std::string> ignored;
  EXPECT_EQ(error_for_index(both, naming, ignored), "(nothing was thrown)");
  EXPECT_THAT(ignored, ElementsAre("toy.inverse_frequencies"));
  EXPECT_THAT(error_for_index(both, {.model = "a toy"}, ignored),
              HasSubstr("tensor \"toy.inverse_frequencies\" is not in model.safetensors.index.json: the file or"));
  EXPECT_THAT(error_for_index(R"("toy.gate.weight":"model-00001-of-00002.safetensors",
                                 "toy.inverse_frequencies":"model-00002-of-00002.safetensors")",
                              naming, ignored),
              HasSubstr("tensor \"toy.bias\" is not in model.safetensors.index.json: the file or"));
}

TEST(Pretrained, FilesThatWouldReplaceOthersAreRefused) {
  const TemporaryDirectory directory;
  const auto message = [&](std::vector<ModelFile> files) {
    return error_of([&] { write_pretrained(directory / "best", OrderedJson::object(), files, {}); });
  };
  EXPECT_THAT(message({{"a", ""}, {"a", ""}}), StartsWith("a: a model directory holds only one file of this name"));
  for (const std::string name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
    EXPECT_THAT(message({{name, ""}}), StartsWith(name + ": a model directory holds only one file of this name"));
  }
  for (const std::string name : {"", ".", "..", "../a", "a/b", "/a"}) {
    EXPECT_THAT(message({{name, ""}}), StartsWith("\"" + name + "\" is not the name of a file in a model directory"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace mylos::data
