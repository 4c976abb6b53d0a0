// mylos generate and mylos tokenize --model through the program.

#include "core/parameters.hpp"
#include "data/huggingface/safetensors.hpp"
#include "families/llama/llama_model.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/written_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Words = std::vector<std::string>;

/// Parses one object per line.
std::vector<json> objects(const std::string& lines) {
  std::vector<json> all;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) all.push_back(json::parse(line));
  return all;
}

/// Writes a Llama with random weights and a tokenizer for the letters a and b. Rows 5 to 7 only pad its vocabulary.
/// `weight` is the weight of its final norm.
void write_letters_llama(const fs::path& directory, std::size_t positions = 24, float weight = 1.0f) {
  const families::LlamaShape shape{.vocabulary = 8,
                                   .hidden = 8,
                                   .layers = 1,
                                   .heads = 2,
                                   .key_value_heads = 1,
                                   .head_size = 4,
                                   .feed_forward = 8,
                                   .positions = positions,
                                   .initializer_range = 0.5f};
  const auto model = families::make_llama(shape, Precision::float32);
  std::vector<std::vector<float>> values;
  std::vector<data::NamedTensor> tensors;
  for (const ParameterTensor& row : model->table().tensors()) {
    std::vector<float>& of_row = values.emplace_back(row.size);
    initialize(row, 5, of_row);
    if (row.name == "model.norm.weight") of_row.assign(row.size, weight);
    tensors.push_back({row.name, row.shape, {}});
  }
  for (std::size_t i = 0; i < values.size(); ++i) tensors[i].values = values[i];
  fs::create_directories(directory);
  data::write_safetensors(directory / "model.safetensors", tensors);
  write_file(directory / "tokenizer.model", letters_model());
  write_file(directory / "config.json", json{{"model_type", "llama"},
                                             {"vocab_size", 8},
                                             {"hidden_size", 8},
                                             {"intermediate_size", 8},
                                             {"num_hidden_layers", 1},
                                             {"num_attention_heads", 2},
                                             {"num_key_value_heads", 1},
                                             {"max_position_embeddings", positions},
                                             {"bos_token_id", 1},
                                             {"eos_token_id", nullptr}}
                                            .dump());
}

class Generate : public testing::Test {
 protected:
  void SetUp() override { write_letters_llama(model_); }

  Words words(const Words& more) const { return joined({"generate", "--model", model_}, more); }
  ProgramRun run(const Words& more, const std::string& input = "") const { return run_mylos(words(more), input); }
  void expect_refused(const Words& more, int exit_code, const std::string& message, const std::string& input = "") {
    const ProgramRun refused = run(more, input);
    EXPECT_EQ(refused.exit_code, exit_code) << message;
    EXPECT_THAT(refused.errors, HasSubstr(message));
    EXPECT_THAT(refused.error_lines(), SizeIs(1)) << refused.errors;
  }

  TemporaryDirectory directory_;
  fs::path model_ = directory_ / "model";
};

TEST_F(Generate, PrintsOneContinuationAPrompt) {
  const ProgramRun plain = run({"--max-new-tokens", "5", "ab", "ba"});
  ASSERT_EQ(plain.exit_code, 0) << plain.errors;
  const ProgramRun as_json = run({"--max-new-tokens", "5", "--json", "--batch", "2", "ab", "ba"});
  const std::vector<json> found = objects(as_json.output);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(plain.output, found[0]["text"].get<std::string>() + "\n" + found[1]["text"].get<std::string>() + "\n");
  for (const json& one : found) {
    EXPECT_THAT(one["ids"], SizeIs(5));
    EXPECT_THAT(one["log_probabilities"], SizeIs(5));
    EXPECT_EQ(one["stop"], "length");
    for (const json& value : one["log_probabilities"]) EXPECT_LT(value, 0.0);
  }
  EXPECT_EQ(found[1]["prompt"], "ba");
}

TEST_F(Generate, LinesAreThePromptsOfTheArguments) {
  const Words drawn = {"--max-new-tokens", "9", "--temperature", "2", "--seed", "7", "--json"};
  Words named = joined(drawn, {"--batch", "3", "ab", "", "bbb"});
  const std::string expected = run(named).output;
  EXPECT_THAT(objects(expected), SizeIs(3));
  EXPECT_EQ(run(drawn, "ab\n\r\nbbb\n").output, expected);
  Words two = joined(drawn, {"--batch", "2"});
  EXPECT_EQ(run(two, "ab\n\nbbb").output, expected);
  EXPECT_EQ(run(drawn, "").output, "");
  two[5] = "8";
  EXPECT_NE(run(two, "ab\n\nbbb").output, expected);
}

TEST_F(Generate, EndsAtTheLastPositionAndAtEos) {
  const json last = json::parse(run({"--json", "abab"}).output);
  EXPECT_EQ(last["stop"], "positions");
  EXPECT_THAT(last["ids"], SizeIs(24 - 5));
  const json full = json::parse(run({"--json", std::string(23, 'a')}).output);
  EXPECT_EQ(full["stop"], "positions");
  EXPECT_EQ(full["text"], "");
  // In another configuration, the third token is EOS.
  json config = read_json(model_ / "config.json");
  config["eos_token_id"] = {7, last["ids"][2]};
  write_file(model_ / "config.json", config.dump());
  const json ended = json::parse(run({"--json", "abab"}).output);
  EXPECT_EQ(ended["stop"], "eos");
  EXPECT_EQ(ended["ids"].back(), last["ids"][2]);
  EXPECT_LE(ended["ids"].size(), 3u);
}

/// Tokens are printed long before the end, and before a buffer is full.
TEST_F(Generate, PrintsTokensAsTheyCome) {
  write_letters_llama(model_, 200'000);
  const fs::path output = directory_ / "output";
  const RunningProgram running(words({"--max-new-tokens", "190000", "--temperature", "1", "a"}), "", output);
  std::uintmax_t size = 0;
  wait_until([&] {
    std::error_code not_yet;
    size = fs::file_size(output, not_yet);
    return !not_yet && size > 0;
  });
  EXPECT_GT(size, 0u);
  EXPECT_LT(size, 60'000u);
}

TEST_F(Generate, TakesARunsDirectory) {
  write_file(directory_ / "train.txt", "abab\nbaba\naabb\n");
  const fs::path run_directory = directory_ / "run";
  ASSERT_EQ(run_mylos({"train", "--model", model_, "--train", directory_ / "train.txt", "--output", run_directory,
                       "--steps", "1", "--max-length", "16", "--no-bos", "--gemm", default_provider()})
                .exit_code,
            0);
  const ProgramRun continued = run_mylos({"generate", "--model", run_directory, "--json", "ab"});
  ASSERT_EQ(continued.exit_code, 0) << continued.errors;
  EXPECT_THAT(continued.errors, HasSubstr("options from its run.json: --no-bos true"));
  EXPECT_THAT(json::parse(continued.output)["ids"], SizeIs(24 - 2));
}

TEST_F(Generate, PrecisionsGiveTheSameTextOfASharpModel) {
  write_letters_llama(model_, 24, 30.0f);
  const std::string expected = run({"ab"}).output;
  EXPECT_EQ(run({"--precision", "bfloat16", "ab"}).output.substr(0, 4), expected.substr(0, 4));
  EXPECT_EQ(run({"--precision", "half", "ab"}).output, expected);
}

TEST_F(Generate, BadSettingsAreNamed) {
  expect_refused({"--temperature", "-1", "a"}, 2, "--temperature -1: expected a number of at least 0");
  expect_refused({"--top-p", "0", "a"}, 2, "--top-p 0: expected a number above 0 and at most 1");
  expect_refused({"--top-k", "0", "a"}, 2, "--top-k 0: expected a whole number from 1");
  expect_refused({"--max-new-tokens", "0", "a"}, 2, "--max-new-tokens 0: expected");
  const ProgramRun no_model = run_mylos({"generate", "a"});
  EXPECT_EQ(no_model.exit_code, 2);
  EXPECT_THAT(no_model.errors, HasSubstr("generate needs --model"));
}

TEST_F(Generate, BadPromptsAreNamed) {
  expect_refused({"--json", "a", std::string(24, 'b')}, 1,
                 "prompt 2 has 25 tokens, and the model has 24 positions (max_position_embeddings)");
  expect_refused({"a\xff"}, 1, "prompt 1: not UTF-8 at byte 1");
  expect_refused({"--no-bos", ""}, 1, "prompt 1 has no tokens, and --no-bos adds none");
  const ProgramRun lines = run({"--batch", "8", "--max-new-tokens", "2"}, "a\nb\n\xff\nab\n");
  EXPECT_EQ(lines.exit_code, 1);
  EXPECT_THAT(lines.errors, HasSubstr("standard input, line 3: not UTF-8 at byte 0"));
  EXPECT_EQ(lines.output, run({"--max-new-tokens", "2", "a", "b"}).output);
}

TEST_F(Generate, BadModelsAreNamed) {
  write_letters_llama(model_, 24, std::numeric_limits<float>::infinity());
  expect_refused({"ab"}, 1, "prompt 1: the logits of token 1 are not finite");
  fs::remove(model_ / "model.safetensors");
  expect_refused({"ab"}, 1, "has no weights (model.safetensors");
  write_letters_llama(model_);
  json config = read_json(model_ / "config.json");
  config["vocab_size"] = 4;
  write_file(model_ / "config.json", config.dump());
  expect_refused({"ab"}, 1, "tokenizer.model: has 5 pieces, and the model's vocab_size is 4");
  fs::remove(model_ / "tokenizer.model");
  expect_refused({"ab"}, 1, "has no tokenizer (tokenizer.json or tokenizer.model), which is needed for texts");
}

TEST_F(Generate, RefusesModelsOfOtherTasks) {
  write_tiny_model(directory_ / "reader");
  const ProgramRun refused = run_mylos({"generate", "--model", directory_ / "reader", "ab"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("is a model for question answering"));
}

TEST_F(Generate, TokenizeKnowsTheModelsTokenizer) {
  const Words tokenize = {"tokenize", "--model", model_}, decode = {"tokenize", "--model", model_, "--decode"};
  EXPECT_EQ(run_mylos(tokenize, "ab\n\nba<s>\n").output, "[3,4]\n[]\n[4,3,0]\n");
  EXPECT_EQ(run_mylos(decode, "[3, 4]\n\n1 4\t3\n").output, "ab\n\nba\n");
  const auto error = [&](const Words& words, const std::string& input) {
    const ProgramRun run = run_mylos(words, input);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.error_lines(), SizeIs(1));
    return run.errors;
  };
  EXPECT_THAT(error(decode, "3\n3 x\n"), HasSubstr("standard input, line 2: \"x\" is not a token id"));
  EXPECT_THAT(error(decode, "3\n[3, -1]\n"), HasSubstr("standard input, line 2: \"-1\" is not a token id"));
  EXPECT_THAT(error(decode, "[3, 4\n"), HasSubstr("standard input, line 1: not JSON"));
  EXPECT_THAT(error(decode, "5\n"), HasSubstr("standard input, line 1: id 5 is outside the tokenizer's 5 pieces"));
  EXPECT_THAT(error(tokenize, "a\xff\n"), HasSubstr("standard input, line 1: not UTF-8"));
  EXPECT_THAT(error({"tokenize", "--decode"}, ""), HasSubstr("tokenize needs --model"));
  EXPECT_THAT(error({"tokenize", "--model", model_, "--cased"}, ""), HasSubstr("--cased needs --vocab"));
  EXPECT_THAT(error({"tokenize", "--model", model_, "--vocab", "v"}, ""),
              HasSubstr("--model and --vocab exclude each other"));
  fs::remove(model_ / "tokenizer.model");
  EXPECT_THAT(error(tokenize, "ab\n"),
              HasSubstr("has no tokenizer (tokenizer.json or tokenizer.model), which is needed for texts"));
}

/// The text of ids has that of special tokens, and control characters, but on a terminal.
TEST_F(Generate, TokenizeNeedsNoModelBesideATokenizer) {
  const fs::path alone = directory_ / "alone";
  fs::create_directory(alone);
  fs::copy_file(source_dir() / "examples" / "chat" / "model" / "tokenizer.json", alone / "tokenizer.json");
  const std::string text = "A\tjob\r<|im_end|>\x01";
  const ProgramRun ids = run_mylos({"tokenize", "--model", alone}, text + "\n");
  ASSERT_EQ(ids.exit_code, 0) << ids.errors;
  const json shown = json::parse(run_mylos({"tokenize", "--model", alone, "--offsets"}, text + "\n").output);
  EXPECT_EQ(shown["ids"], json::parse(ids.output));
  EXPECT_EQ(shown["offsets"].back(), json({16, 17}));
  EXPECT_EQ(run_mylos({"tokenize", "--model", alone, "--decode"}, ids.output).output, text + "\n");
  EXPECT_THAT(run_mylos({"tokenize", "--model", alone, "--decode", "--offsets"}).errors,
              HasSubstr("--decode and --offsets exclude each other"));
}

TEST_F(Generate, ConversationsFollowTheModelsTemplate) {
  write_file(model_ / "chat_template.jinja",
             "{% for m in messages %}{{ m.content }}{{ 'b' if m.role == 'assistant' }}{% endfor %}"
             "{{ 'b' if add_generation_prompt and messages[0].content|length > 1 }}");
  const std::string row =
      R"({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "ba"}]})";
  const Words tokenize = {"tokenize", "--model", model_, "--chat"};
  EXPECT_EQ(run_mylos(tokenize, row + "\n").output, "{\"text\":\"abbab\",\"ids\":[3,4,4,3,4],\"mask\":[0,0,0,1,1]}\n");
  EXPECT_THAT(run_mylos(tokenize, "[5\n").errors, HasSubstr("standard input, line 1: not JSON"));
  EXPECT_THAT(run_mylos(tokenize, "{}\n").errors, HasSubstr("standard input, line 1: the key 'messages' is missing"));
  EXPECT_THAT(run_mylos({"tokenize", "--vocab", "v", "--chat"}).errors, HasSubstr("tokenize needs --model"));

  const Words answer = {"--max-new-tokens", "5", "--json", "--chat"};
  const auto ids = [&](const Words& more) { return json::parse(run(more).output)["ids"]; };
  const json expected = ids({"--max-new-tokens", "5", "--json", "--no-bos", "abb"});
  EXPECT_EQ(ids(joined(answer, {R"([{"role": "user", "content": "ab"}])"})), expected);
  EXPECT_EQ(ids(joined(answer, {R"({"messages": [{"role": "user", "content": "ab"}]})"})), expected);
  EXPECT_EQ(ids(joined(answer, {"ab"})), expected);
  expect_refused(joined(answer, {"[5]"}), 1, "prompt 1: messages[0]: expected object, found number");
  expect_refused(joined(answer, {"{"}), 1, "prompt 1: not JSON");

  const auto first = expected[0].get<int>();  // eos_token ends a turn, whatever config.json says
  write_file(model_ / "tokenizer_config.json", json{{"eos_token", first == 3 ? "a" : first == 4 ? "b" : "?"}}.dump());
  const json ended = json::parse(run(joined(answer, {"ab"})).output);
  EXPECT_EQ(ended["stop"], first == 3 || first == 4 ? "eos" : "length") << expected;
  fs::remove(model_ / "chat_template.jinja");
  expect_refused(joined(answer, {"ab"}), 1, "has no chat_template, neither in tokenizer_config.json nor as");
}

TEST_F(Generate, TokenizeWithAModelOfWords) {
  write_tiny_model(directory_ / "reader");
  const Words tokenize = {"tokenize", "--model", directory_ / "reader"};
  const ProgramRun by_model = run_mylos(tokenize, "The 3 Tests\n");
  EXPECT_EQ(by_model.exit_code, 0) << by_model.errors;
  EXPECT_EQ(by_model.output,
            run_mylos({"tokenize", "--vocab", directory_ / "reader/vocab.txt"}, "The 3 Tests\n").output);
  Words decode = tokenize;
  decode.emplace_back("--decode");
  const ProgramRun refused = run_mylos(decode, "5\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("does not turn ids into text"));
}

}  // namespace
}  // namespace mylos::tests
