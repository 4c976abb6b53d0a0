#include "families/interface/fast_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "families/model_families.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

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
  std::string choice() const { return tokenizer_choice(FileReader(), directory_.path()); }

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

TEST(FastTokenizerOfBert, VocabTxtIsReadUnlessTokenizerJsonHasOtherTokens) {
  const TemporaryDirectory directory;
  write_file(directory / "config.json", R"({"model_type": "bert", "vocab_size": 5, "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
      "type_vocab_size": 2})");
  write_file(directory / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const auto write_json = [&](std::string_view last) {
    write_file(directory / "tokenizer.json",
               letters_json("WordPiece", fmt::format(R"("vocab": {{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3,
                                                        "{}": 4}})",
                                                     last)));
  };
  const auto identity = [&] { return read_tokenizer(FileReader(), directory.path())->identity(); };
  const data::TokenizerIdentity alone = identity();
  write_json("a");
  EXPECT_EQ(identity(), alone);
  write_json("b");
  EXPECT_NE(identity(), alone);
  write_file(directory / "tokenizer.json", "{}");
  EXPECT_EQ(identity(), alone);
  write_file(directory / "tokenizer.json", R"({"added_tokens": [{"id": 3, "content": "[SEP]"}]})");
  EXPECT_EQ(identity(), alone);
  write_file(directory / "tokenizer.json", R"({"added_tokens": [{"id": 3, "content": "[X]"}]})");
  EXPECT_THAT(error_of([&] { (void)identity(); }), HasSubstr("tokenizer.json: model.vocab: there is no token"));
}

}  // namespace
}  // namespace mylos::families
