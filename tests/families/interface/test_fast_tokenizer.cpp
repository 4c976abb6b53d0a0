#include "families/interface/fast_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "families/model_families.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

std::string letters_json(std::string_view type, std::string_view rest) {
  return fmt::format(R"({{"version": "1.0", "model": {{"type": "{}", {}}}}})", type, rest);
}

/// A Llama's directory with both files: 5 tokens in tokenizer.model, 3 in tokenizer.json.
class FastTokenizer : public ::testing::Test {
 protected:
  FastTokenizer() {
    write_file(directory_ / "config.json", R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
        "rms_norm_eps": 1e-5, "hidden_act": "silu"})");
    write_file(directory_ / "tokenizer.model", tests::letters_model());
    write_file(directory_ / "tokenizer.json",
               letters_json("BPE", R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"])"));
  }
  std::size_t size() const { return read_tokenizer(FileReader(), directory_.path())->size(); }
  std::string choice() const {
    std::string line;
    notice_tokenizer_choice(FileReader(), directory_.path(), [&](const std::string& text) { line = text; });
    return line;
  }

  TemporaryDirectory directory_;
};

TEST_F(FastTokenizer, TokenizerJsonIsReadAsTransformersDoes) {
  EXPECT_EQ(size(), 3U);
  EXPECT_THAT(choice(), HasSubstr("has tokenizer.model and tokenizer.json: tokenizer.json is read"));
  write_file(directory_ / "tokenizer_config.json", R"({"use_fast": false})");
  EXPECT_EQ(size(), 5U);
  EXPECT_THAT(choice(), HasSubstr("tokenizer.model is read"));
  std::filesystem::remove(directory_ / "tokenizer.model");
  EXPECT_EQ(size(), 3U);
  EXPECT_EQ(choice(), "");
  write_file(directory_ / "tokenizer_config.json", R"({"use_fast": 1})");
  EXPECT_EQ(size(), 3U);
  write_file(directory_ / "tokenizer.model", tests::letters_model());
  EXPECT_THAT(error_of([&] { (void)size(); }), HasSubstr("use_fast: expected boolean, found number"));
}

TEST_F(FastTokenizer, AVocabularyLargerThanTheModelIsRefused) {
  std::string vocabulary;
  for (int id = 0; id < 9; ++id) vocabulary += fmt::format("{}\"{}\": {}", id == 0 ? "" : ", ", id, id);
  write_file(directory_ / "tokenizer.json",
             letters_json("BPE", fmt::format(R"("vocab": {{{}}}, "merges": [])", vocabulary)));
  EXPECT_THAT(error_of([&] { (void)size(); }),
              HasSubstr("tokenizer.json: has 9 tokens, and the model's vocab_size is 8"));
}

/// A BERT's directory with vocab.txt, tokenizer.json, or both.
class FastTokenizerOfBert : public ::testing::Test {
 protected:
  FastTokenizerOfBert() {
    write_file(directory_ / "config.json", R"({"model_type": "bert", "vocab_size": 6, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
        "type_vocab_size": 2})");
  }
  void write_vocabulary() const { write_file(directory_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nB\n"); }
  void write_json(const Json& json) const { write_file(directory_ / "tokenizer.json", json.dump()); }
  std::unique_ptr<data::Tokenizer> read() const { return read_tokenizer(FileReader(), directory_.path()); }

  /// What transformers writes for this vocabulary.
  const Json json_ = Json::parse(R"({"version": "1.0", "truncation": {"max_length": 8}, "padding": null,
      "added_tokens": [{"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
                        "normalized": false, "special": true}],
      "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                     "lowercase": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"},
      "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
      "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "B": 5}}})");
  TemporaryDirectory directory_;
};

TEST_F(FastTokenizerOfBert, TokenizerJsonAloneIsTheSameTokenizer) {
  EXPECT_EQ(error_of([&] { read(); }), directory_.path().string() + " has neither vocab.txt nor tokenizer.json");
  write_vocabulary();
  const data::TokenizerIdentity alone = read()->identity();
  write_json(json_);
  EXPECT_EQ(read()->identity(), alone);
  std::filesystem::remove(directory_ / "vocab.txt");
  EXPECT_EQ(read()->identity(), alone);
  EXPECT_THAT(read()->encode("a [CLS] b"), ElementsAre(4, 2, 1));
  write_file(directory_ / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_THAT(read()->encode("a B"), ElementsAre(4, 5)) << "tokenizer_config.json counts, as in transformers";
  write_file(directory_ / "config.json", R"({"model_type": "bert", "vocab_size": 7, "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
      "type_vocab_size": 2})");
  EXPECT_THAT(error_of([&] { read(); }), HasSubstr("tokenizer.json has 6 tokens, config.json says vocab_size = 7"));
}

TEST_F(FastTokenizerOfBert, OtherStagesAreThoseOfTheFile) {
  write_vocabulary();
  write_json(json_);
  const data::TokenizerIdentity bert = read()->identity();
  const auto is_other = [&](const char* pointer, Json value) {
    Json other = json_;
    other[Json::json_pointer(pointer)] = std::move(value);
    write_json(other);
    return read()->identity() != bert;
  };
  EXPECT_FALSE(is_other("/padding", {{"strategy", "BatchLongest"}}));
  EXPECT_TRUE(is_other("/normalizer/clean_text", false));
  EXPECT_TRUE(is_other("/normalizer", nullptr));
  EXPECT_TRUE(is_other("/pre_tokenizer/type", "Whitespace"));
  EXPECT_TRUE(is_other("/model/max_input_chars_per_word", 50));
  EXPECT_TRUE(is_other("/added_tokens/0/lstrip", true));
  EXPECT_TRUE(is_other("/added_tokens/0", {{"id", 5}, {"content", "B"}, {"special", true}}));
  EXPECT_TRUE(is_other("/post_processor/type", "RobertaProcessing"));
  EXPECT_EQ(read()->pair_layout().separators, 2U);
}

}  // namespace
}  // namespace mylos::families
