#include "data/tokenizer/json/json_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "data/tokenizer/json/regular_expression.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

nlohmann::json offsets_of(const Tokens& tokens) {
  auto offsets = nlohmann::json::array();
  for (const CodePointRange& range : tokens.offsets) offsets.push_back({range.begin, range.end});
  return offsets;
}

/// Returns a small tokenizer.json, for tests that change it.
nlohmann::json small_tokenizer() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 5, "content": "<s>", "special": true, "normalized": false},
                     {"id": 6, "content": "</s>", "special": true, "normalized": false}],
    "normalizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "b+"}, "behavior": "Isolated", "invert": false},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<0x0A>": 3, " ": 4}, "merges": ["a b"]}})");
}

JsonTokenizer read(const nlohmann::json& json) { return {json.dump(), "tokenizer.json"}; }

std::string error_of_reading(const nlohmann::json& json) {
  return tests::error_of([&] { read(json); });
}

/// Returns the error after `value` was written at `pointer`.
std::string error_with(const std::string& pointer, nlohmann::json value) {
  nlohmann::json json = small_tokenizer();
  json[nlohmann::json::json_pointer(pointer)] = std::move(value);
  return error_of_reading(json);
}

/// Compares a recorded line; each of its fields is what `tokenizers` gives for its text.
void compare_line(const JsonTokenizer& tokenizer, const nlohmann::json& row) {
  const auto text = row.at("text").get<std::string>();
  const Tokens tokens = tokenizer.tokenize(text);
  EXPECT_EQ(nlohmann::json(tokens.ids), row.at("ids")) << row.dump();
  EXPECT_EQ(offsets_of(tokens), row.at("offsets")) << row.dump();
  const Tokens special = tokenizer.with_special(text);
  EXPECT_EQ(nlohmann::json(special.ids), row.at("special")) << row.dump();
  EXPECT_EQ(special.offsets.size(), special.ids.size());
  const auto decoded = row.value("decoded", text);
  EXPECT_EQ(tokenizer.decode_all(tokens.ids), decoded) << row.dump();
  EXPECT_EQ(tokenizer.decode(special.ids), row.value("skipped", decoded)) << row.dump();
}

/// Compares two texts in the layout of the post-processor.
void compare_pair(const JsonTokenizer& tokenizer, const nlohmann::json& row) {
  const Tokens texts[] = {tokenizer.tokenize(row.at("text").get<std::string>()),
                          tokenizer.tokenize(row.at("pair").get<std::string>())};
  Tokens all;
  std::vector<std::int32_t> types;
  std::vector<nlohmann::json> sequences;
  ASSERT_NE(tokenizer.pair_template(), nullptr);
  for (const TemplatePart& part : *tokenizer.pair_template()) {
    const Tokens& text = texts[part.sequence];
    const bool is_text = part.ids.empty();
    const auto& added = is_text ? text.ids : part.ids;
    all.ids.insert(all.ids.end(), added.begin(), added.end());
    if (is_text) all.offsets.insert(all.offsets.end(), text.offsets.begin(), text.offsets.end());
    all.offsets.resize(all.ids.size());
    types.resize(all.ids.size(), part.type);
    sequences.resize(all.ids.size(), is_text ? nlohmann::json(part.sequence) : nlohmann::json());
  }
  EXPECT_EQ(nlohmann::json(all.ids), row.at("ids")) << row.dump();
  EXPECT_EQ(nlohmann::json(types), row.at("type_ids")) << row.dump();
  EXPECT_EQ(nlohmann::json(sequences), row.at("sequences")) << row.dump();
  EXPECT_EQ(offsets_of(all), row.at("offsets")) << row.dump();
}

std::vector<std::filesystem::path> recorded_directories() {
  std::vector<std::filesystem::path> found;
  const auto directory = tests::shared_reference() / "tokenizers";
  if (!std::filesystem::exists(directory)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (std::filesystem::exists(entry.path() / "tokens.jsonl")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(JsonTokenizerRecorded, StagesAreHuggingFaces) {
  auto rows = tests::golden_lines("tokenizer_stages.jsonl");
  std::optional<JsonTokenizer> tokenizer;
  std::string name;
  std::size_t texts = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    nlohmann::json& row = rows[i];
    if (row.is_object()) {
      name = row.at("name").get<std::string>();
      nlohmann::json& model = row.at("tokenizer").at("model");
      model = rows[0].at(model.get<std::string>());
      tokenizer.emplace(read(row.at("tokenizer")));
      continue;
    }
    SCOPED_TRACE(name);
    ++texts;
    compare_line(*tokenizer, {{"text", row[0]},
                              {"ids", row[1]},
                              {"offsets", row[2]},
                              {"special", row[3]},
                              {"decoded", row[4]},
                              {"skipped", row[5]}});
  }
  EXPECT_GT(texts, 300U);
}

TEST(JsonTokenizerRecorded, LinesAreHuggingFaces) {
  if (recorded_directories().empty()) GTEST_SKIP() << "no recorded tokenizers (MYLOS_REFERENCE)";
  for (const auto& directory : recorded_directories()) {
    SCOPED_TRACE(directory.filename().string());
    const auto tokenizer = JsonTokenizer::load(FileReader(), directory / "tokenizer.json");
    for (const auto& row : tests::json_lines(directory / "tokens.jsonl")) compare_line(tokenizer, row);
  }
}

TEST(JsonTokenizerRecorded, PairsAreHuggingFaces) {
  if (recorded_directories().empty()) GTEST_SKIP() << "no recorded tokenizers (MYLOS_REFERENCE)";
  for (const auto& directory : recorded_directories()) {
    if (!std::filesystem::exists(directory / "pairs.jsonl")) continue;
    SCOPED_TRACE(directory.filename().string());
    const auto tokenizer = JsonTokenizer::load(FileReader(), directory / "tokenizer.json");
    for (const auto& row : tests::json_lines(directory / "pairs.jsonl")) compare_pair(tokenizer, row);
  }
}

TEST(JsonTokenizer, KnowsItsTokens) {
  const JsonTokenizer tokenizer = read(small_tokenizer());
  EXPECT_EQ(tokenizer.size(), 7U);
  EXPECT_EQ(tokenizer.find("<s>"), 5);
  EXPECT_EQ(tokenizer.find("abc"), std::nullopt);
  EXPECT_EQ(tokenizer.token(6), "</s>");
  EXPECT_EQ(tokenizer.bytes(3), "\n");
  EXPECT_EQ(tokenizer.bytes(2), "");
  EXPECT_EQ(tests::error_of([&] { (void)tokenizer.token(7); }), "id 7 is outside the tokenizer's 7 tokens");
  EXPECT_EQ(tests::error_of([&] { (void)tokenizer.token(-1); }), "id -1 is outside the tokenizer's 7 tokens");
  EXPECT_THAT(tests::error_of([&] { (void)tokenizer.tokenize("a\xC3"); }), HasSubstr("not UTF-8 at byte 1"));
  nlohmann::json other = small_tokenizer();
  other["decoder"] = nullptr;
  EXPECT_NE(tokenizer.identity(), read(other).identity());
}

TEST(JsonTokenizer, RolesComeFromTheConfigurationOrThePostProcessor) {
  const tests::TemporaryDirectory directory;
  nlohmann::json json = small_tokenizer();
  tests::write_file(directory / "tokenizer.json", json.dump());
  const auto load = [&] { return JsonTokenizer::load(FileReader(), directory / "tokenizer.json"); };
  EXPECT_EQ(load().special(SpecialToken::first), std::nullopt);
  tests::write_file(directory / "tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})");
  EXPECT_EQ(load().special(SpecialToken::first), 5);
  EXPECT_EQ(load().special(SpecialToken::end), 6);
  tests::write_file(directory / "tokenizer_config.json", R"({"bos_token": "<x>"})");
  EXPECT_THAT(tests::error_of(load), HasSubstr("tokenizer_config.json: bos_token: "));
  tests::write_file(directory / "tokenizer_config.json", R"({"pad_token": "<x>"})");
  EXPECT_EQ(load().special(SpecialToken::padding), std::nullopt);
  tests::write_file(directory / "tokenizer_config.json", R"({"unk_token": "<x>"})");
  EXPECT_EQ(load().special(SpecialToken::unknown), std::nullopt);
  std::filesystem::remove(directory / "tokenizer_config.json");
  json["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 5}}, {"sep", {"</s>", 6}}};
  tests::write_file(directory / "tokenizer.json", json.dump());
  const JsonTokenizer roberta = load();
  EXPECT_EQ(roberta.special(SpecialToken::first), 5);
  EXPECT_EQ(roberta.special(SpecialToken::separator), 6);
  EXPECT_EQ(roberta.pair_layout().separators, 2U);
  EXPECT_EQ(roberta.pair_layout().second_type, 0);
  EXPECT_THAT(roberta.with_special("ab").ids, ElementsAre(5, 0, 1, 6));
  json["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"<s>", 5}}, {"sep", {"</s>", 6}}};
  EXPECT_EQ(read(json).pair_layout().second_type, 1);
}

TEST(JsonTokenizer, ThePostProcessorSaysHowATextBegins) {
  nlohmann::json json = small_tokenizer();
  EXPECT_EQ(read(json).first_token(5), std::nullopt);
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {5}}, {"tokens", {"<s>"}}}}}}};
  EXPECT_EQ(read(json).first_token(6), 5);
  json["post_processor"]["special_tokens"]["<s>"]["ids"] = {5, 6};
  EXPECT_EQ(tests::error_of([&] { (void)read(json).first_token(6); }),
            "tokenizer.json: post_processor: 2 tokens before a text are not supported; only one is");
}

TEST(JsonTokenizer, LlamasClassesAddWhatTheConfigurationSays) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "tokenizer.json", small_tokenizer().dump());
  const auto load = [&](const nlohmann::json& config) {
    tests::write_file(directory / "tokenizer_config.json", config.dump());
    return JsonTokenizer::load(FileReader(), directory / "tokenizer.json");
  };
  EXPECT_THAT(load({{"tokenizer_class", "PreTrainedTokenizerFast"}}).with_special("a").ids, ElementsAre(0));
  EXPECT_THAT(load({{"tokenizer_class", "LlamaTokenizer"}}).with_special("a").ids, ElementsAre(5, 0));
  EXPECT_EQ(load({{"tokenizer_class", "LlamaTokenizerFast"}}).first_token(6), 5);
  const nlohmann::json turned = {
      {"tokenizer_class", "LlamaTokenizerFast"}, {"add_bos_token", false}, {"add_eos_token", true}};
  EXPECT_THAT(load(turned).with_special("a").ids, ElementsAre(0, 6));
  EXPECT_EQ(load(turned).first_token(5), std::nullopt);
  const nlohmann::json both = {{"bos_token", "</s>"}, {"cls_token", "<s>"}, {"tokenizer_class", "CohereTokenizer"}};
  EXPECT_THAT(load(both).with_special("a").ids, ElementsAre(6, 0));
  EXPECT_THAT(load({{"tokenizer_class", "GPTNeoXTokenizerFast"}}).with_special("a").ids, ElementsAre(0));
  nlohmann::json trimmed = small_tokenizer();
  trimmed["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  tests::write_file(directory / "tokenizer.json", trimmed.dump());
  EXPECT_EQ(offsets_of(load(nlohmann::json::object()).tokenize(" ")), nlohmann::json({{1, 1}}));
  EXPECT_EQ(offsets_of(load(nlohmann::json::object()).tokenize_untrimmed(" ")), nlohmann::json({{0, 1}}));
  const nlohmann::json gemma = {{"tokenizer_class", "GemmaTokenizer"}, {"bos_token", "<s>"}};
  EXPECT_EQ(offsets_of(load(gemma).tokenize(" ")), nlohmann::json({{0, 1}}));
  EXPECT_THAT(tests::error_of([&] {
                load({{"tokenizer_class", "GemmaTokenizer"}});
              }),
              HasSubstr("add_bos_token: true, but there is no such token"));
  nlohmann::json without = small_tokenizer();
  without["added_tokens"] = nlohmann::json::array();
  tests::write_file(directory / "tokenizer.json", without.dump());
  EXPECT_THAT(tests::error_of([&] {
                load({{"tokenizer_class", "LlamaTokenizer"}});
              }),
              HasSubstr("tokenizer_config.json: add_bos_token: true, but there is no such token in "));
}

TEST(JsonTokenizer, WhatIsNotSupportedIsRefusedByItsPlace) {
  EXPECT_EQ(error_with("/normalizer", {{"type", "Nmt"}}), "tokenizer.json: normalizer: the type Nmt is not supported");
  EXPECT_EQ(error_with("/pre_tokenizer", {{"type", "Sequence"},
                                          {"pretokenizers", {{{"type", "Whitespace"}}, {{"type", "UnicodeScripts"}}}}}),
            "tokenizer.json: pre_tokenizer.pretokenizers[1]: the type UnicodeScripts is not supported");
  EXPECT_EQ(error_with("/post_processor", {{"type", "Other"}}),
            "tokenizer.json: post_processor: the type Other is not supported");
  EXPECT_EQ(error_with("/decoder", {{"type", "CTC"}}), "tokenizer.json: decoder: the type CTC is not supported");
  EXPECT_EQ(error_with("/model/type", "WordLevel"), "tokenizer.json: model: the type WordLevel is not supported");
  EXPECT_EQ(error_with("/model/dropout", 0.1),
            "tokenizer.json: model.dropout: a dropout of merges is not supported; only null is");
  EXPECT_EQ(error_with("/model/new", 1), "tokenizer.json: model: the field new is not supported");
  EXPECT_EQ(error_with("/new", 1), "tokenizer.json: the field new is not supported");
  EXPECT_EQ(error_with("/pre_tokenizer/behavior", "Odd"),
            "tokenizer.json: pre_tokenizer.behavior: the behavior Odd is not supported");
  EXPECT_EQ(error_with("/model/dropout", 0), "(nothing was thrown)");
  EXPECT_EQ(error_with("/truncation", {{"max_length", 3}}), "(nothing was thrown)");
}

TEST(JsonTokenizer, DamagedTokensAreRefused) {
  EXPECT_EQ(error_with("/model/merges/0", "a x"), "tokenizer.json: model.merges[0]: the token 'x' is not in vocab");
  EXPECT_EQ(error_with("/model/merges/0", "b a"), "tokenizer.json: model.merges[0]: the token 'ba' is not in vocab");
  const std::string merge = "tokenizer.json: model.merges[0]: expected two tokens, as \"a b\" or [\"a\", \"b\"]";
  for (const char* bad : {R"("a")", R"("a b c")", R"(["a"])", R"(["a", 1])", R"([["a", "b"]])", "1", "null", "{}"}) {
    EXPECT_EQ(error_with("/model/merges/0", nlohmann::json::parse(bad)), merge) << bad;
  }
  EXPECT_EQ(error_with("/model/vocab/ab", 1), "tokenizer.json: model.vocab: 'ab' and 'b' have the id 1");
  EXPECT_EQ(error_with("/model/vocab/ab", 9),
            "tokenizer.json: model.vocab: 'ab' has the id 9, and there are 5 tokens: an id is missing or there twice");
  EXPECT_EQ(error_with("/model/vocab/ab", -1),
            "tokenizer.json: model.vocab: the id of 'ab' is -1: expected a whole number that is not negative");
  EXPECT_EQ(error_with("/model/vocab", nlohmann::json::object()), "tokenizer.json: model.vocab: there is no token");
  for (const char* bad : {R"("2")", "0.0", "[2]", "{}", "null"}) {
    EXPECT_THAT(error_with("/model/vocab/ab", nlohmann::json::parse(bad)),
                HasSubstr("model.vocab[3]: expected a token with its id, a whole number"))
        << bad;
  }
  EXPECT_EQ(error_with("/added_tokens/0/id", 7),
            "tokenizer.json: added_tokens[0]: the id of '<s>' is 7; the first that is free is 5");
  EXPECT_EQ(error_with("/added_tokens/1/content", "ab"),
            "tokenizer.json: added_tokens[1]: the id of 'ab' is 6; in model.vocab it is 2");
  EXPECT_EQ(error_with("/added_tokens/1/content", "<s>"),
            "tokenizer.json: added_tokens[1]: the token '<s>' is there twice");
  EXPECT_THAT(error_with("/added_tokens/1/id", 1ULL << 40U), HasSubstr("the id of '</s>' is 1099511627776; "));
  EXPECT_EQ(error_with("/model/unk_token", "?"), "tokenizer.json: model.unk_token: '?' is not in vocab");
  EXPECT_THAT(error_with("/post_processor", {{"type", "BertProcessing"}, {"cls", {"<s>", 50}}, {"sep", {"</s>", 6}}}),
              HasSubstr("post_processor: /cls/1: no token has the id 50"));
  EXPECT_EQ(tests::error_of([] { JsonTokenizer("[", "tokenizer.json"); }).find("tokenizer.json: not JSON at line 1"),
            0U);
  EXPECT_THAT(tests::error_of([] { JsonTokenizer("[]", "tokenizer.json"); }), HasSubstr("expected object, found list"));
}

TEST(JsonTokenizerRecorded, RegularExpressionsCutAsHuggingFaces) {
  struct Cut {
    const char* expression;
    const char* text;
    std::vector<std::size_t> ends;  // of the parts
  };
  for (const Cut& cut :
       {Cut{R"(\p{N}{1,3}+)", "1234567", {7}}, Cut{"(?:ab)(a){2}?", "abaaaaa", {4, 7}},
        Cut{"a{2,3}?", "aaaaa", {2, 4, 5}}, Cut{"(?m).+", "a\nb", {3}}, Cut{"(?-m:.)+", "a\nb", {1, 2, 3}},
        Cut{"(?i)a|b", "AB", {1, 2}}, Cut{"(?i:'[sd])b", "'Sb'sB", {3, 6}}, Cut{R"([\w]+)", "a²b", {1, 3, 4}},
        Cut{R"(\w+)", "a²b", {4}}, Cut{"[[:space:]]+", "a \u0085b", {1, 4, 5}}, Cut{"[[:digit:]a]+", "1a٣b", {4, 5}},
        Cut{"b(?#c)+", "abb", {1, 3}}, Cut{"[(]{2}+a{x", "((((a{x", {7}}, Cut{"[^(a[.,b])]+", "xyb,[z", {2, 4, 6}},
        Cut{R"([a[b[c]\]]d]+)", "xabc]d", {1, 6}}, Cut{R"(\b\w)", "ab c", {1, 3, 4}}}) {
    std::vector<Match> parts;
    Pattern(Json{{"Regex", cut.expression}}, JsonLocation("cut")).find(cut.text, parts);
    std::vector<std::size_t> ends;
    for (const Match& part : parts) ends.push_back(part.end);
    EXPECT_EQ(ends, cut.ends) << cut.expression;
  }
}

TEST(JsonTokenizer, ListsOfOtherTypesAreRefused) {
  for (const char* bad : {R"("a b")", "1", "null", "true", R"({"a": "b"})"}) {
    EXPECT_EQ(error_with("/model/merges", nlohmann::json::parse(bad)), "tokenizer.json: model.merges: expected a list")
        << bad;
  }
  for (const char* bad : {R"("a")", "1", "null"}) {
    EXPECT_EQ(error_with("/model/vocab", nlohmann::json::parse(bad)),
              "tokenizer.json: model.vocab: expected an object or a list");
  }
  const auto scores = nlohmann::json::parse(R"([["a", -1], ["b", -2]])");
  const auto error_of_model = [](const nlohmann::json& model) { return error_of_reading({{"model", model}}); };
  const std::string wanted = "tokenizer.json: model.vocab: expected object, found list";
  EXPECT_EQ(error_of_model({{"type", "BPE"}, {"vocab", scores}, {"merges", nlohmann::json::array()}}), wanted);
  EXPECT_EQ(error_of_model({{"type", "WordPiece"}, {"unk_token", "a"}, {"vocab", scores}}), wanted);
  EXPECT_EQ(error_of_model({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", {{"a", 0}}}}),
            "tokenizer.json: model.vocab: expected list, found object");
  EXPECT_THAT(error_with("/model/vocab", nlohmann::json::parse(R"([[-1, "a"]])")),
              HasSubstr("model.vocab[0]: expected a token with its score"));
  EXPECT_EQ(error_of_model({{"type", "BPE"}, {"vocab", {{"a", 0}}}}),
            "tokenizer.json: model: the key 'merges' is missing");
  EXPECT_EQ(error_with("/version", "2.0"), "tokenizer.json: version: 2.0 is not supported; only 1.0 is");
  EXPECT_THAT(error_with("/version", 1.0), HasSubstr("version: expected string, found number"));
  std::string twice = small_tokenizer().dump();
  twice.insert(twice.find("\"vocab\""), R"("vocab": {"c": 0}, )");
  EXPECT_EQ(tests::error_of([&] { JsonTokenizer(twice, "tokenizer.json"); }),
            "tokenizer.json: model.vocab: the field is there twice");
}

TEST(JsonTokenizer, ModelsWithoutATypeAreKnownByTheirFields) {
  nlohmann::json json = small_tokenizer();
  json["added_tokens"] = nullptr;
  json["model"].erase("type");
  EXPECT_THAT(read(json).encode("ab"), ElementsAre(0, 1));
  json["pre_tokenizer"] = nullptr;
  EXPECT_THAT(read(json).encode("ab"), ElementsAre(2));
  json["model"] = nlohmann::json::parse(R"({"unk_id": 0, "vocab": [["a", -1], ["b", -2], ["ab", -9]]})");
  EXPECT_THAT(read(json).encode("ab"), ElementsAre(0, 1));
  json["model"]["unk_id"] = nullptr;
  EXPECT_THAT(read(json).encode("ab"), ElementsAre(0, 1));
  EXPECT_EQ(tests::error_of([&] { (void)read(json).encode("ac"); }),
            "tokenizer.json: model.unk_id: null: no token stands for 'c', which vocab lacks");
  json["model"] = nlohmann::json::parse(
      R"({"unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9, "vocab": {"a": 0, "##b": 1}})");
  EXPECT_THAT(read(json).encode("ab"), ElementsAre(0, 1));
  json["model"] = nlohmann::json::parse(R"({"unk_token": "a", "vocab": {"a": 0, "##b": 1}})");
  EXPECT_EQ(error_of_reading(json), "tokenizer.json: model: the type WordLevel is not supported");
}

TEST(JsonTokenizerRecorded, ScoresOfAUnigramAreRoundedAsHuggingFaces) {
  const JsonTokenizer tokenizer = read(nlohmann::json::parse(R"({"model": {"unk_id": 0, "vocab": [
      ["<unk>", 0.0], ["a", -5.319755545655747], ["aa", -5.818033219124926], ["aaa", -7.2579501238390804]]}})"));
  EXPECT_THAT(tokenizer.encode("aaaaaaa"), ElementsAre(2, 3, 2));  // with the nearest numbers: 2, 2, 3
  EXPECT_THAT(tokenizer.encode("aaaa"), ElementsAre(2, 2));
}

TEST(JsonTokenizer, RegularExpressionsAreChecked) {
  const std::string path = "/pre_tokenizer/pattern/Regex";
  const std::string place = "tokenizer.json: pre_tokenizer.pattern.Regex: ";
  EXPECT_THAT(error_with(path, "(a"), StartsWith(place + "the regular expression does not compile: missing closing"));
  EXPECT_EQ(error_with(path, "[a[bc]]"), "(nothing was thrown)");
  EXPECT_EQ(error_with(path, "[a[^bc]]"),
            place + "the regular expression uses [^ within a class, which is not supported");
  EXPECT_EQ(error_with(path, "\\h"), place + "the regular expression uses \\h, which is not supported");
  EXPECT_EQ(error_with(path, "[a-z&&b]"), place + "the regular expression uses && in a class, which is not supported");
  for (const char* bad :
       {"a(*COMMIT)", "(?R)",        "(?1)",    "(?P<n>a)",      "(?|a|b)",     "(?<n>a)", "(?x:a)",
        "a(?i)b",     "(?i:SS)",     "(?i:é)",  R"((?i)\p{Lu})", "[[:alpha:]]", "a{,2}",   R"(\pL)",
        R"(\v)",      R"(a(?#\)b))", R"([\b])", "[a-[b]]",       "[[a]-z]",     "[a[-b]]", "[[a-]b]"}) {
    EXPECT_THAT(error_with(path, bad),
                AllOf(StartsWith(place + "the regular expression uses "), EndsWith(", which is not supported")))
        << bad;
  }
  nlohmann::json json = small_tokenizer();
  json[nlohmann::json::json_pointer(path)] = "(?:b+)+[cd]";
  const JsonTokenizer tokenizer = read(json);
  EXPECT_THAT(tests::error_of([&] { (void)tokenizer.tokenize(std::string(60, 'b')); }),
              StartsWith(place + "the regular expression fails on a text: "));
  json[nlohmann::json::json_pointer(path)] = "(?:a|aa)+$";
  std::string repeats;
  for (int i = 0; i < 1000; ++i) repeats += std::string(30, 'a') + "b";
  const JsonTokenizer exploding = read(json);
  EXPECT_THAT(tests::error_of([&] { (void)exploding.tokenize(repeats); }),
              StartsWith(place + "the regular expression fails on a text: "));
  json[nlohmann::json::json_pointer(path)] = R"(\s+(?!\S)|\s+|[^\r\n\p{L}\p{N}]?\p{L}+|.)";
  EXPECT_EQ(read(json).encode(std::string(1'000'000, ' ') + std::string(1'000'000, 'a')).size(), 2'000'000U);
}

TEST(JsonTokenizer, ManyAddedTokensAreReadInLinearTime) {
  // Returns the processor time; that of another number of tokens is measured beside it, on the same machine.
  const auto time_of = [](int tokens) {
    nlohmann::json json = small_tokenizer();
    for (int i = 7; i < tokens; ++i) {
      json["added_tokens"].push_back({{"id", i}, {"content", "<" + std::to_string(i) + ">"}});
    }
    const std::string text = json.dump();
    const auto start = std::clock();
    const JsonTokenizer tokenizer(text, "tokenizer.json");
    const double time = static_cast<double>(std::clock() - start);
    EXPECT_EQ(tokenizer.find("<" + std::to_string(tokens - 1) + ">"), tokens - 1);
    return time;
  };
  const double of_few = time_of(3'000);
  EXPECT_LT(time_of(60'000), 100.0 * of_few);  // 20 in linear time, 400 in quadratic time
}

TEST(JsonTokenizer, StagesThatMakeTooMuchOfATextAreNamed) {
  nlohmann::json json = small_tokenizer();
  auto stages = nlohmann::json::array();
  for (int i = 0; i < 6; ++i) {
    stages.push_back({{"type", "Replace"}, {"pattern", {{"Regex", "."}}}, {"content", std::string(100, 'a')}});
  }
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", stages}};
  const auto error_of_text = [&](std::string_view text) {
    return tests::error_of([&] { (void)read(json).tokenize(text); });
  };
  EXPECT_EQ(error_of_text("ab"),
            "tokenizer.json: normalizer.normalizers[2]: makes more than 1048704 bytes of 2 characters");
  stages.erase(3);
  stages.erase(3);
  stages.erase(3);
  json["normalizer"]["normalizers"] = stages;
  EXPECT_EQ(error_of_text("a<s>a<s>a"), "tokenizer.json: normalizer: makes more than 1049152 bytes of 9 characters");
  json["normalizer"] = nullptr;
  stages.clear();
  for (int i = 0; i < 30; ++i)
    stages.push_back({{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}});
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", stages}};
  EXPECT_THAT(error_of_text("\xC3\xA9"), StartsWith("tokenizer.json: pre_tokenizer.pretokenizers[1"));
}

TEST(JsonTokenizer, LongWordsMergeAsShortOnes) {
  nlohmann::json json = small_tokenizer();
  json["pre_tokenizer"] = nullptr;
  json["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}, {"aba", 3}, {"abab", 4}};
  json["model"]["merges"] = {"ab ab", "a b", "ab a"};
  const JsonTokenizer whole = read(json);
  std::string text;
  for (int i = 0; i < 300; ++i) text += i % 7 == 3 ? "b" : "ab";
  std::string decoded;
  for (const TokenId id : whole.encode(text)) decoded += whole.token(id);
  EXPECT_EQ(decoded, text);
  EXPECT_THAT(whole.encode("ababab"), ElementsAre(4, 2));
  EXPECT_EQ(whole.encode(std::string("ab") + text).front(), 4);
}

}  // namespace
}  // namespace mylos::data
