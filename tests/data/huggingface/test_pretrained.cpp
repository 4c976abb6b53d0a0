#include "data/huggingface/pretrained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

constexpr auto tiny_config = R"({"model_type":"bert","vocab_size":4,"hidden_size":2,"num_hidden_layers":1,
  "num_attention_heads":1,"intermediate_size":2,"max_position_embeddings":8})";

const std::vector<TensorSpec> wanted{{"bert.embeddings.LayerNorm.weight", {2}},
                                     {"bert.encoder.layer.0.output.dense.weight", {2, 2}},
                                     {"qa_outputs.bias", {2}, true}};

/// Tensors by name whose values count up from 1.
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

/// A model directory with these weights, read as `wanted` asks.
struct Loaded {
  explicit Loaded(const Tensors& tensors, Precision type = Precision::float32) {
    write_file(directory / "config.json", tiny_config);
    tensors.write(directory / "model.safetensors", type);
    message = error_of([&] {
      report =
          PretrainedModel(directory.path()).read_weights(wanted, [&](std::size_t row, std::span<const float> data) {
            values[row].assign(data.begin(), data.end());
          });
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
  EXPECT_EQ(ignored_line(loaded.report), "");
}

TEST(Pretrained, ReadsSixteenBitFiles) {
  for (const auto type : {Precision::bfloat16, Precision::float16}) {
    const Loaded loaded(whole(), type);
    EXPECT_THAT(loaded.values.at(1), ElementsAre(1, 2, 3, 4));
  }
}

TEST(Pretrained, UnderstandsLegacyAndBareNames) {
  Tensors tensors;
  tensors.add("embeddings.LayerNorm.gamma", {2}).add("encoder.layer.0.output.dense.weight", {2, 2});
  const Loaded loaded(tensors);
  EXPECT_EQ(loaded.message, "(nothing was thrown)");
  EXPECT_THAT(loaded.values.at(0), ElementsAre(1, 2));
}

TEST(Pretrained, HeadsForOtherTasksAreIgnoredInOneLine) {
  auto tensors = whole();
  tensors.add("cls.predictions.bias", {4})
      .add("pooler.dense.weight", {2, 2})
      .add("bert.embeddings.position_ids", {1, 8});
  const Loaded loaded(tensors);
  EXPECT_EQ(loaded.message, "(nothing was thrown)");
  EXPECT_EQ(ignored_line(loaded.report),
            "3 tensors not used for question answering are ignored: bert.embeddings.position_ids, pooler.dense.weight, "
            "cls.predictions.bias");
}

TEST(Pretrained, ExtraTensorsAreNamed) {
  auto tensors = whole();
  for (int i = 0; i < 10; ++i) tensors.add("classifier." + std::to_string(i), {1});
  const Loaded loaded(tensors);
  EXPECT_THAT(loaded.message,
              HasSubstr(" have 10 tensors that a BERT of this config.json does not: classifier.0, classifier.1, "));
  EXPECT_TRUE(loaded.message.ends_with("classifier.7 and 2 more"));
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

TEST(Pretrained, TwoNamesForOneTensorAreAnError) {
  auto tensors = whole();
  tensors.add("embeddings.LayerNorm.gamma", {2});
  EXPECT_THAT(Loaded(tensors).message, HasSubstr("is also there as \""));
}

TEST(Pretrained, TokenizerOptionsComeFromTheirFile) {
  const TemporaryDirectory directory;
  write_file(directory / "config.json", tiny_config);
  EXPECT_TRUE(PretrainedModel(directory.path()).tokenizer_options().do_lower_case);
  EXPECT_FALSE(PretrainedModel(directory.path()).tokenizer_options().strip_accents.has_value());
  write_file(
      directory / "tokenizer_config.json",
      R"({"do_lower_case":false,"strip_accents":true,"tokenize_chinese_chars":false,"tokenizer_class":"BertTokenizerFast"})");
  const auto options = PretrainedModel(directory.path()).tokenizer_options();
  EXPECT_FALSE(options.do_lower_case);
  EXPECT_EQ(options.strip_accents, true);
  EXPECT_FALSE(options.tokenize_chinese_chars);
}

TEST(Pretrained, WrongTokenizerOptionsAreNamed) {
  const TemporaryDirectory directory;
  write_file(directory / "config.json", tiny_config);
  const auto message = [&](const char* text) {
    write_file(directory / "tokenizer_config.json", text);
    return error_of([&] { PretrainedModel model(directory.path()); });
  };
  EXPECT_THAT(message("{"), HasSubstr("tokenizer_config.json: not JSON at line "));
  EXPECT_THAT(message("[]"), HasSubstr("tokenizer_config.json: not a JSON object"));
  EXPECT_THAT(message(R"({"do_lower_case":"no"})"), HasSubstr("do_lower_case = \"no\" is not true or false"));
  EXPECT_THAT(message(R"({"do_basic_tokenize":false})"),
              HasSubstr("do_basic_tokenize = false is not supported; only true is"));
  EXPECT_THAT(message(R"({"tokenizer_class":"BertJapaneseTokenizer"})"),
              HasSubstr("tokenizer_class BertJapaneseTokenizer is not supported; only BertTokenizer is"));
}

TEST(Pretrained, AbsentFilesAreNamed) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { PretrainedModel model(directory.path()); }),
            "cannot read " + (directory / "config.json").string() + ": No such file or directory");
  write_file(directory / "config.json", tiny_config);
  EXPECT_EQ(error_of([&] { PretrainedModel(directory.path()).vocabulary_path(); }),
            directory.path().string() + " has no vocab.txt");
}

TEST(Pretrained, VocabularySizeGoesWithTheModel) {
  BertConfig config;
  config.vocab_size = 30522;
  EXPECT_NO_THROW(check_vocabulary_size(config, 30522, "V"));
  EXPECT_EQ(error_of([&] { check_vocabulary_size(config, 100, "V"); }),
            "V has 100 tokens, config.json says vocab_size = 30522: it is not this model's vocabulary, or not whole");
  EXPECT_THAT(error_of([&] { check_vocabulary_size(config, 30521, "V"); }), HasSubstr("V has 30521 tokens"));
  EXPECT_THAT(error_of([&] { check_vocabulary_size(config, 30523, "V"); }), HasSubstr("V has 30523 tokens"));
  config.vocab_size = 30528;
  EXPECT_NO_THROW(check_vocabulary_size(config, 30522, "V"));
  EXPECT_THAT(error_of([&] { check_vocabulary_size(config, 30400, "V"); }), HasSubstr("V has 30400 tokens"));
}

TEST(Pretrained, WhatIsWrittenReadsBack) {
  const TemporaryDirectory directory;
  const TokenizerFiles tokenizer{
      "[PAD]\n[UNK]\n", "{}", {.do_lower_case = false, .strip_accents = false, .tokenize_chinese_chars = true}};
  const auto config = parse_bert_config(tiny_config, "config");
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector<NamedTensor> weights{{wanted[0].name, {2}, std::span(values).first(2)},
                                         {wanted[1].name, {2, 2}, values},
                                         {wanted[2].name, {2}, std::span(values).last(2)}};
  write_file(directory / "best/stale.txt", "of the model before");
  write_file(directory / "best.partial-deadbeef/half", "of a killed run");
  write_pretrained(directory / "best", config, tokenizer, weights);
  EXPECT_FALSE(std::filesystem::exists(directory / "best/stale.txt"));
  EXPECT_FALSE(std::filesystem::exists(directory / "best.partial-deadbeef"));
  const PretrainedModel model(directory / "best");
  EXPECT_EQ(model.config(), config);
  EXPECT_FALSE(model.tokenizer_options().do_lower_case);
  EXPECT_EQ(model.tokenizer_options().strip_accents, false);
  EXPECT_EQ(model.tokenizer_files().vocabulary, tokenizer.vocabulary);
  EXPECT_EQ(model.tokenizer_files().tokenizer_json, "{}");
  std::map<std::size_t, std::vector<float>> back;
  const auto report = model.read_weights(
      wanted, [&](std::size_t row, std::span<const float> data) { back[row].assign(data.begin(), data.end()); });
  EXPECT_TRUE(report.missing.empty());
  EXPECT_THAT(back.at(1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(back.at(2), ElementsAre(3, 4));
}

TEST(Pretrained, AFailedWriteLeavesTheOldModel) {
  const TemporaryDirectory directory;
  write_file(directory / "best/config.json", "old");
  const std::vector<float> one{1};
  const std::vector<NamedTensor> repeated{{"a", {1}, one}, {"a", {1}, one}};
  EXPECT_THROW(write_pretrained(directory / "best", BertConfig{}, {}, repeated), std::invalid_argument);
  EXPECT_EQ(tests::read_file(directory / "best/config.json"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Pretrained, ReadsTheReferenceModel) {
  const auto path = tests::golden_data() / "reference/tiny_bert";
  const SafetensorsFile file(path / "model.safetensors");
  std::vector<TensorSpec> all;
  for (const auto& tensor : file.tensors()) all.push_back({tensor.name, tensor.shape});
  std::size_t values = 0;
  const auto report =
      PretrainedModel(path).read_weights(all, [&](std::size_t, std::span<const float> row) { values += row.size(); });
  EXPECT_TRUE(report.missing.empty() && report.ignored.empty());
  EXPECT_EQ(values, 16202u);
}

}  // namespace
}  // namespace mylos::data
