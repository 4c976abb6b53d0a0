// Continuations of a model trained elsewhere, compared with those that transformers recorded.

#include "tasks/language_modeling/generator.hpp"

#include "core/kernels/products/gemm_providers.hpp"
#include "core/random.hpp"
#include "data/tokenizer/json/json_tokenizer.hpp"
#include "data/tokenizer/sentencepiece.hpp"
#include "tasks/task_kinds.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace mylos::tasks {
namespace {

using namespace tests;

class StoriesGenerator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(folder_)) GTEST_SKIP() << folder_ << " is not there";
    std::ifstream file(folder_ / "greedy.json");
    recorded_ = nlohmann::json::parse(file);
  }

  std::unique_ptr<Generator> generator(const GenerationConfig& config, Precision precision = Precision::float32) const {
    RunConfig run = default_run(*find_task_kind("language-modeling"), "generate");
    run.task.model = folder_;
    run.engine.precision = precision;
    run.engine.gemm.provider = default_gemm_provider();
    run.engine.seed = 5;
    language_config(run).generation = config;
    return std::make_unique<Generator>(run, [](const std::string& line) { ADD_FAILURE() << line; });
  }
  std::vector<Prompt> prompts(const Generator& generator) const {
    std::vector<Prompt> all;
    for (const auto& one : recorded_) all.push_back(generator.read_prompt(one["prompt"], all.size()));
    return all;
  }
  /// Generates in batches of `batch` prompts.
  static std::vector<Continuation> in_batches(Generator& generator, std::span<const Prompt> prompts,
                                              std::size_t batch) {
    std::vector<Continuation> all;
    for (std::size_t begin = 0; begin < prompts.size(); begin += batch) {
      const auto part = prompts.subspan(begin, std::min(batch, prompts.size() - begin));
      for (Continuation& one : generator.generate(part)) all.push_back(std::move(one));
    }
    return all;
  }
  void expect_same_in_every_batch(const GenerationConfig& config, Precision precision) const {
    const auto one = generator(config, precision);
    const std::vector<Continuation> alone = in_batches(*one, prompts(*one), 1);
    for (const std::size_t batch : {2u, 3u}) {
      const std::vector<Continuation> together = in_batches(*one, prompts(*one), batch);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(together[i].ids, alone[i].ids) << batch;
        EXPECT_EQ(together[i].log_probabilities, alone[i].log_probabilities) << batch;
        EXPECT_EQ(together[i].text, alone[i].text) << batch;
      }
    }
  }

  std::filesystem::path folder_ = shared_reference() / "llama" / "stories260K";
  nlohmann::json recorded_;
};

TEST_F(StoriesGenerator, GreedyContinuationsAreTheRecordedOnes) {
  const auto stories = generator({.max_new_tokens = 64, .sampling = {}});
  const std::vector<Prompt> all = prompts(*stories);
  const std::vector<Continuation> found = stories->generate(all);
  ASSERT_EQ(found.size(), recorded_.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& one = recorded_[i];
    EXPECT_EQ(all[i].ids, one["prompt_ids"].get<std::vector<data::TokenId>>());
    EXPECT_EQ(found[i].ids, one["ids"].get<std::vector<data::TokenId>>());
    EXPECT_EQ(one["prompt"].get<std::string>() + found[i].text, one["text"].get<std::string>());
    EXPECT_EQ(found[i].stop, "length");
  }
}

TEST_F(StoriesGenerator, APromptHasTheContinuationThatItHasAlone) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    expect_same_in_every_batch({.max_new_tokens = 40, .sampling = {}}, precision);
    expect_same_in_every_batch({.max_new_tokens = 40, .sampling = {1.0, 40, 0.95}}, precision);
  }
}

/// As in transformers, which takes the ids of generation_config.json before those of config.json.
TEST_F(StoriesGenerator, EndsAtTheTokensOfTheGenerationConfig) {
  const TemporaryDirectory directory;
  std::filesystem::copy(folder_, directory.path(), std::filesystem::copy_options::recursive);
  folder_ = directory.path();
  const auto ids = recorded_[0]["ids"].get<std::vector<data::TokenId>>();
  const auto first_ids = [&](const std::string& json) {
    write_file(folder_ / "generation_config.json", json);
    const auto stories = generator({.max_new_tokens = ids.size(), .sampling = {}});
    const std::vector<Prompt> one{stories->read_prompt(recorded_[0]["prompt"], 0)};
    return stories->generate(one).front().ids;
  };
  const std::size_t end = 5;
  const auto is_first = std::find(ids.begin(), ids.end(), ids[end]) == ids.begin() + end;
  ASSERT_TRUE(is_first);
  EXPECT_EQ(first_ids(fmt::format(R"({{"eos_token_id": [2, {}], "do_sample": true}})", ids[end])),
            std::vector(ids.begin(), ids.begin() + end + 1));
  EXPECT_EQ(first_ids(R"({"do_sample": true})"), ids);
  EXPECT_EQ(error_of([&] { first_ids(R"({"eos_token_id": [2, 512]})"); }),
            (folder_ / "generation_config.json").string() +
                ": eos_token_id = [2,512]: expected whole numbers from 0 to "
                "511");
}

/// The text reported with each token adds up to the whole text.
TEST_F(StoriesGenerator, TellsTheTextAsItGrows) {
  const auto stories = generator({.max_new_tokens = 30, .sampling = {1.0, {}, {}}});
  std::vector<std::string> texts(3);
  std::vector<std::size_t> calls(3), ends(3);
  const auto found = stories->generate(prompts(*stories), [&](std::size_t index, std::string_view more, bool is_done) {
    texts[index] += more;
    ++calls[index];
    ends[index] += is_done ? 1 : 0;
  });
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(texts[i], found[i].text);
    EXPECT_EQ(calls[i], found[i].ids.size());
    EXPECT_EQ(ends[i], 1u);
  }
}

TEST_F(StoriesGenerator, ACharacterOfSeveralTokensIsTakenWhole) {
  const auto tokenizer = data::SentencePieceTokenizer::load(FileReader(), folder_ / "tokenizer.model");
  GeneratedText text(tokenizer, tokenizer.encode("a b"));
  std::string taken;
  for (const data::TokenId id : tokenizer.encode("\u265a c")) {
    text.append(id);
    taken += text.take_more(false);
    EXPECT_EQ(taken.find("\uFFFD"), std::string::npos);
  }
  taken += text.take_more(true);
  EXPECT_EQ(taken, text.text());
  EXPECT_EQ(taken, " \u265a c");
  // The first of three bytes is not a character by itself, and is reported at the end.
  GeneratedText broken(tokenizer, {});
  broken.append(tokenizer.encode("\u265a")[1]);
  EXPECT_EQ(broken.take_more(false), "");
  EXPECT_EQ(broken.take_more(true), "\uFFFD");
  broken.append(100'000);  // a row that only pads the vocabulary
  EXPECT_EQ(broken.take_more(true), "");
}

/// Returns a model whose pieces are all bytes, white space, a character of several bytes, and U+FFFD, which also stands
/// for malformed characters. `prefix` and `strip` are the model's add_dummy_prefix and remove_extra_whitespaces.
std::string byte_pieces_model(bool prefix, bool strip) {
  std::string pieces = proto_piece("<unk>", 2) + proto_piece("<s>", 3) + proto_piece("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) pieces += proto_piece(fmt::format("<0x{:02X}>", byte), 6);
  for (const char* piece : {"\u2581", "\u2581\u2581", "\u2581a", "b", "\u00E9", "\uFFFD"})
    pieces += proto_piece(piece, 1);
  const std::string settings("\x18\x02\x98\x02\x01", 5);  // BPE, byte_fallback
  const std::string normalizer =
      proto_field(1, "identity") + std::string{'\x18', prefix ? '\1' : '\0', '\x20', strip ? '\1' : '\0'};
  return pieces + proto_field(2, settings) + proto_field(3, normalizer);
}

/// Returns the tokenizers of the tree and of the recorded models, and those of byte_pieces_model.
std::vector<std::unique_ptr<data::Tokenizer>> tokenizers(const TemporaryDirectory& directory) {
  std::vector<std::unique_ptr<data::Tokenizer>> all;
  const auto add = [&](const std::filesystem::path& path) {
    all.push_back(
        std::make_unique<data::SentencePieceTokenizer>(data::SentencePieceTokenizer::load(FileReader(), path)));
  };
  for (const char* name : {"gpt2-bytelevel", "llama3-style", "llama2-fast", "unigram-xlmr", "wordpiece-fast"}) {
    const std::filesystem::path path = shared_reference() / "tokenizers" / name / "tokenizer.json";
    if (!std::filesystem::exists(path)) continue;
    all.push_back(std::make_unique<data::JsonTokenizer>(data::JsonTokenizer::load(FileReader(), path)));
  }
  const auto stages = golden_lines("tokenizer_stages.jsonl");
  for (const nlohmann::json& row : stages) {
    if (!row.is_object() || !row.contains("tokenizer") || row["tokenizer"]["decoder"].is_null()) continue;
    nlohmann::json json = row["tokenizer"];
    json["model"] = stages[0].at(json["model"].get<std::string>());
    all.push_back(std::make_unique<data::JsonTokenizer>(json.dump(), row["name"].get<std::string>()));
  }
  const std::filesystem::path recorded = shared_reference() / "llama";
  for (const auto& folder : {source_dir() / "examples/chess/model", recorded / "chess", recorded / "stories260K"}) {
    const std::filesystem::path path = folder / "tokenizer.model";
    if (std::filesystem::exists(path)) add(path);
  }
  for (const bool prefix : {false, true}) {
    for (const bool strip : {false, true}) {
      write_file(directory / "tokenizer.model", byte_pieces_model(prefix, strip));
      add(directory / "tokenizer.model");
    }
  }
  return all;
}

/// Appends the ids one by one, and compares the reported text with that of decoding all ids at once.
void expect_streamed(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt,
                     std::span<const data::TokenId> ids) {
  GeneratedText text(tokenizer, prompt);
  std::vector<data::TokenId> all(prompt.begin(), prompt.end());
  std::string taken;
  for (const data::TokenId id : ids) {
    text.append(id);
    all.push_back(id);
    taken += text.take_more(false);
    const std::string whole = tokenizer.decode(all), shown = tokenizer.decode(prompt);
    // Bytes after those at a prompt's end may change what they are decoded to.
    if (whole.starts_with(shown)) ASSERT_EQ(text.text(), whole.substr(shown.size())) << ::testing::PrintToString(all);
    ASSERT_TRUE(text.text().starts_with(taken)) << ::testing::PrintToString(all);
  }
  taken += text.take_more(true);
  ASSERT_EQ(taken, text.text()) << ::testing::PrintToString(all);
}

TEST(GeneratedText, StreamsWhatAllTokensTogetherAreDecodedTo) {
  const TemporaryDirectory directory;
  const std::string prompts[] = {"", " ", "a", "b \u265a", "1. e4 e5"};
  for (const std::unique_ptr<data::Tokenizer>& held : tokenizers(directory)) {
    const data::Tokenizer& tokenizer = *held;
    const std::vector<data::TokenId> characters =
        tokenizer.encode(" na\u00EFve \u265A\u4E2D\u6587 \U0001F600  \u20AC b");
    std::uint64_t drawn = 0;
    for (std::size_t round = 0; round < 120; ++round) {
      const std::vector<data::TokenId> prompt = tokenizer.encode(prompts[round % std::size(prompts)]);
      expect_streamed(tokenizer, prompt, characters);
      std::vector<data::TokenId> ids;
      // All tokens, only bytes, and only those that begin, continue or are not characters.
      const std::uint64_t most[] = {tokenizer.size(), std::min<std::size_t>(tokenizer.size(), 259)};
      for (std::size_t i = 0; i < 24; ++i) {
        data::TokenId id = static_cast<data::TokenId>(uniform_below(most[round % 2], 7, 0, drawn++));
        if (round % 3 == 0)
          id = static_cast<data::TokenId>(
              std::min<std::uint64_t>(most[0] - 1, 3 + 0x80 + uniform_below(0x80, 7, 0, drawn++)));
        ids.push_back(id);
      }
      expect_streamed(tokenizer, prompt, ids);
    }
  }
}

/// Returns the CPU time of `action` in seconds.
template <class Action>
double seconds_of(const Action& action) {
  const std::clock_t begin = std::clock();
  action();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Decoding all tokens again for each token would take 10,000 times as long as decoding them once.
TEST(GeneratedText, StreamsInTimeThatGrowsWithTheLength) {
  const TemporaryDirectory directory;
  for (const std::unique_ptr<data::Tokenizer>& tokenizer : tokenizers(directory)) {
    for (const std::uint64_t kinds : {std::min<std::uint64_t>(tokenizer->size(), 259), tokenizer->size()}) {
      std::vector<data::TokenId> ids(20'000);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<data::TokenId>(uniform_below(kinds, 3, 0, i));
      }
      const double once = seconds_of([&] { (void)tokenizer->decode(ids); });
      const double streamed = seconds_of([&] {
        GeneratedText text(*tokenizer, {});
        for (const data::TokenId id : ids) {
          text.append(id);
          (void)text.take_more(false);
        }
      });
      EXPECT_LT(streamed, 200 * std::max(once, 1e-3));
    }
  }
}

}  // namespace
}  // namespace mylos::tasks
