#include "data/tokenizer/json/tokenizer_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer/json/json_tokenizer.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json changed(Json tokenizer, const Json& config) {
  apply_tokenizer_config(config, JsonLocation("tokenizer_config.json"), tokenizer);
  return tokenizer;
}

TEST(TokenizerConfig, SaysWhetherASpaceStandsBeforeATextUnlessForLlama) {
  const Json spaced = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}}};
  const Json plain = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
  EXPECT_EQ(changed(spaced, {{"tokenizer_class", "GPT2Tokenizer"}}), plain);
  EXPECT_EQ(changed(spaced, Json::object()), plain);
  EXPECT_EQ(changed(plain, {{"add_prefix_space", true}}), spaced);
  EXPECT_EQ(changed(spaced, {{"tokenizer_class", "LlamaTokenizerFast"}}), spaced);
  const Json other = {{"pre_tokenizer", {{"type", "Metaspace"}, {"add_prefix_space", true}}}};
  EXPECT_EQ(changed(other, Json::object()), other);
  EXPECT_EQ(changed(Json::object(), Json::object()), Json::object());
}

TEST(TokenizerConfig, HasTheOptionsOfBertsNormalizer) {
  const Json cased = {
      {"normalizer",
       {{"type", "BertNormalizer"}, {"lowercase", false}, {"strip_accents", nullptr}, {"handle_chinese_chars", true}}}};
  Json uncased = cased;
  uncased["normalizer"]["lowercase"] = true;
  EXPECT_EQ(changed(cased, {{"tokenizer_class", "BertTokenizer"}}), uncased);
  EXPECT_EQ(changed(uncased, {{"tokenizer_class", "BertTokenizerFast"}, {"do_lower_case", false}}), cased);
  EXPECT_EQ(changed(cased, {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", true}}), cased);
  uncased["normalizer"]["strip_accents"] = false;
  uncased["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_EQ(
      changed(cased,
              {{"tokenizer_class", "ElectraTokenizer"}, {"strip_accents", false}, {"tokenize_chinese_chars", false}}),
      uncased);
}

TEST(TokenizerConfig, AddsTokens) {
  const Json tokenizer = {{"added_tokens", {{{"id", 3}, {"content", "<s>"}, {"special", true}}}}};
  EXPECT_EQ(changed(tokenizer, {{"added_tokens_decoder", {{"3", {{"content", "<s>"}, {"special", true}}}}}}),
            tokenizer);
  const Json config = {{"added_tokens_decoder",
                        {{"10", {{"content", "<b>"}}},
                         {"9", {{"content", "<a>"}, {"__type", "AddedToken"}}},
                         {"7", {{"content", "<s>"}, {"special", false}}}}}};
  EXPECT_EQ(changed(tokenizer, config)["added_tokens"],
            Json::parse(R"([{"id": 3, "content": "<s>", "special": false}, {"id": 9, "content": "<a>"},
                            {"id": 10, "content": "<b>"}])"));
  const auto error = [](const Json& added) {
    return tests::error_of([&] { changed(Json::object(), {{"added_tokens_decoder", added}}); });
  };
  EXPECT_EQ(error({{"x", {{"content", "<a>"}}}}), "tokenizer_config.json: added_tokens_decoder.x: is no id");
  EXPECT_THAT(error({{"1", "<a>"}}), HasSubstr("tokenizer_config.json: added_tokens_decoder.1: "));
}

TEST(TokenizerConfig, MakesTheTokensSpecialThatItNames) {
  const Json tokenizer = {{"added_tokens", {{{"content", "<a>"}}, {{"content", "<b>"}}, {{"content", "<c>"}}}}};
  const auto marked = [&](const Json& config) {
    std::string names;
    const Json tokens = changed(tokenizer, config)["added_tokens"];
    for (const Json& token : tokens) names += token.value("special", false) ? token["content"].get<std::string>() : "";
    return names;
  };
  EXPECT_EQ(marked(Json::object()), "");
  EXPECT_EQ(marked({{"eos_token", "<a>"}, {"pad_token", {{"content", "<b>"}}}, {"unk_token", nullptr}}), "<a><b>");
  EXPECT_EQ(marked({{"additional_special_tokens", {"<c>", "<d>"}}, {"add_bos_token", true}}), "<c>");
  EXPECT_EQ(marked({{"additional_special_tokens", nullptr}, {"image_token", "<a>"}}), "");
  EXPECT_EQ(marked({{"extra_special_tokens", {{"image_token", "<a>"}}}}), "<a>");
}

/// The checksum counts what changes, and nothing else.
TEST(TokenizerConfig, ChangesTheTokenizerAndItsIdentity) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  const auto load = [&] { return JsonTokenizer::load(FileReader(), directory / "tokenizer.json"); };
  const TokenizerIdentity alone = load().identity();
  EXPECT_THAT(load().encode("ab"), ElementsAre(2));
  tests::write_file(directory / "tokenizer_config.json", "{}");
  EXPECT_EQ(load().identity(), alone);
  tests::write_file(directory / "tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "b"}}})");
  EXPECT_THAT(load().encode("ab"), ElementsAre(0, 1));
  EXPECT_NE(load().identity(), alone);
}

}  // namespace
}  // namespace mylos::data
