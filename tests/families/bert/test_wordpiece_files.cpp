#include "families/bert/wordpiece_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace mylos::families {
namespace {

using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;
using tests::write_file;

TEST(WordPieceFiles, OptionsComeFromTheirFile) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(read_tokenizer_options(FileReader(), directory.path()).do_lower_case);
  EXPECT_FALSE(read_tokenizer_options(FileReader(), directory.path()).strip_accents.has_value());
  write_file(
      directory / "tokenizer_config.json",
      R"({"do_lower_case":false,"strip_accents":true,"tokenize_chinese_chars":false,"tokenizer_class":"BertTokenizerFast"})");
  const auto options = read_tokenizer_options(FileReader(), directory.path());
  EXPECT_FALSE(options.do_lower_case);
  EXPECT_EQ(options.strip_accents, true);
  EXPECT_FALSE(options.tokenize_chinese_chars);
}

TEST(WordPieceFiles, WrongOptionsAreNamed) {
  const TemporaryDirectory directory;
  const auto message = [&](const char* text) {
    write_file(directory / "tokenizer_config.json", text);
    return error_of([&] { read_tokenizer_options(FileReader(), directory.path()); });
  };
  EXPECT_THAT(message("{"), HasSubstr("tokenizer_config.json: not JSON at line "));
  EXPECT_THAT(message("[]"), HasSubstr("tokenizer_config.json: not a JSON object"));
  EXPECT_THAT(message(R"({"do_lower_case":"no"})"), HasSubstr("do_lower_case = \"no\" is not true or false"));
  EXPECT_THAT(message(R"({"do_basic_tokenize":false})"),
              HasSubstr("do_basic_tokenize = false is not supported; only true is"));
  EXPECT_THAT(message(R"({"tokenizer_class":"BertJapaneseTokenizer"})"),
              HasSubstr("tokenizer_class BertJapaneseTokenizer is not supported; only BertTokenizer is"));
}

TEST(WordPieceFiles, VocabularySizeGoesWithTheModel) {
  EXPECT_NO_THROW(check_vocabulary_size(30522, 30522, "V"));
  EXPECT_EQ(
      error_of([&] { check_vocabulary_size(30522, 100, "V"); }),
      "V has 100 tokens, config.json says vocab_size = 30522: it is the vocabulary of another model, or incomplete");
  EXPECT_THAT(error_of([&] { check_vocabulary_size(30522, 30521, "V"); }), HasSubstr("V has 30521 tokens"));
  EXPECT_THAT(error_of([&] { check_vocabulary_size(30522, 30523, "V"); }), HasSubstr("V has 30523 tokens"));
  EXPECT_NO_THROW(check_vocabulary_size(30528, 30522, "V"));
  EXPECT_THAT(error_of([&] { check_vocabulary_size(30528, 30400, "V"); }), HasSubstr("V has 30400 tokens"));
}

TEST(WordPieceFiles, WrittenFilesAreThoseOfTransformers) {
  WordPieceFiles files{.vocabulary = "[PAD]\n", .tokenizer_json = "", .options = {}};
  const auto written = wordpiece_model_files(files, 512);
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0].name, "vocab.txt");
  EXPECT_EQ(written[0].bytes, "[PAD]\n");
  EXPECT_EQ(written[1].name, "special_tokens_map.json");
  const std::string tokens =
      "{\n  \"unk_token\": \"[UNK]\",\n  \"sep_token\": \"[SEP]\",\n  \"pad_token\": \"[PAD]\",\n"
      "  \"cls_token\": \"[CLS]\",\n  \"mask_token\": \"[MASK]\"";
  EXPECT_EQ(written[1].bytes, tokens + "\n}\n");
  EXPECT_EQ(written[2].name, "tokenizer_config.json");
  EXPECT_EQ(written[2].bytes, tokens +
                                  ",\n  \"do_lower_case\": true,\n  \"strip_accents\": null,\n"
                                  "  \"tokenize_chinese_chars\": true,\n  \"model_max_length\": 512,\n"
                                  "  \"tokenizer_class\": \"BertTokenizer\"\n}\n");
  files = {.vocabulary = "", .tokenizer_json = "{}", .options = {}};
  EXPECT_EQ(wordpiece_model_files(files, 512).front().name, "special_tokens_map.json");
  EXPECT_EQ(wordpiece_model_files(files, 512).back().name, "tokenizer.json");
}

}  // namespace
}  // namespace mylos::families
