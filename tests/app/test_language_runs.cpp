#include "tests/app/tiny_run.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

/// Llamas on texts through the program: training, evaluation, resumption, prepared samples and plans.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

/// A small Llama without weights or tokenizer, and documents of token ids.
class LanguageRuns : public TinyRun {
 protected:
  LanguageRuns() : TinyRun(llama_family()) {}
  void SetUp() override {
    TinyRun::SetUp();
    write_file(train_, tiny_documents(40));
    write_file(dev_, tiny_documents(9));
  }

  ProgramRun train(const fs::path& output, const Words& more) const {
    return run_mylos(joined({"train", "--model", model_, "--train", train_, "--dev", dev_, "--output", output,
                             "--batch", "4", "--lr", "1e-2", "--gemm", default_provider()},
                            more));
  }
  /// Expects one error message on the last line. Notices may precede it.
  static void expect_refused(const ProgramRun& run, const std::string& what, int exit_code = 1) {
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    const Words lines = run.error_lines();
    ASSERT_FALSE(lines.empty()) << what;
    EXPECT_THAT(lines.back(), AllOf(StartsWith("mylos: error: "), HasSubstr(what)));
    const auto is_error = [](const std::string& line) { return line.starts_with("mylos: error: "); };
    EXPECT_EQ(std::ranges::count_if(lines, is_error), 1) << run.errors;
  }
};

TEST_F(LanguageRuns, TrainFromTheInitialiserWritesWhatTheInterfaceSays) {
  const ProgramRun run = train(run_, {"--epochs", "4", "--schedule", "constant", "--best-by", "perplexity"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, AllOf(HasSubstr("has no weights: the model is initialised from Normal(0, 0.02) with --seed"),
                                HasSubstr("40 documents, 40 samples"), HasSubstr("2 key/value heads")));
  EXPECT_EQ(read_json(run_ / "run.json")["task"], "language-modeling");
  EXPECT_EQ(read_json(run_ / "run.json")["resolved"]["metrics"][1]["larger_is_better"], false);
  EXPECT_EQ(read_json(run_ / "run.json")["resolved"]["attention"], "portable");
  const std::vector<json> evaluations = records_of(run_, "evaluation");
  ASSERT_EQ(evaluations.size(), 4u);
  EXPECT_LT(evaluations.back()["perplexity"], 0.8 * evaluations.front()["perplexity"].get<double>());
  const json results = read_json(run_ / "results.json");
  EXPECT_EQ(json::parse(run.output), results);
  EXPECT_NEAR(results["perplexity"].get<double>(), std::exp(results["loss"].get<double>()), 1e-9);
  const json best = read_json(run_ / "best/config.json");
  EXPECT_EQ(best["model_type"], "llama");
  EXPECT_EQ(best["num_key_value_heads"], 2);
}

TEST_F(LanguageRuns, PreparedSamplesTrainAlike) {
  const ProgramRun prepared =
      run_mylos({"prepare", "--model", model_, "--data", train_, "--output", directory_ / "samples.h5"});
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  EXPECT_THAT(prepared.errors, HasSubstr("40 documents, 40 samples"));
  ASSERT_EQ(train(directory_ / "whole", {"--steps", "3"}).exit_code, 0);
  train_ = directory_ / "samples.h5";
  const ProgramRun run = train(run_, {"--steps", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(records_of(run_, "step").back()["loss"], records_of(directory_ / "whole", "step").back()["loss"]);
  EXPECT_THAT(train(directory_ / "other", {"--steps", "3", "--max-length", "8"}).errors, HasSubstr("max-length"));
}

/// Adds labels to documents: the second half of each is supervised, and nothing of the last.
std::string half_supervised(const std::string& documents, std::size_t& supervised) {
  std::istringstream stream(documents);
  std::string result;
  for (std::string line; std::getline(stream, line);) {
    json row = json::parse(line);
    row["labels"] = row["input_ids"];
    for (std::size_t i = 0; i < row["labels"].size() / 2 + 1; ++i) row["labels"][i] = -100;
    supervised += row["labels"].size() - row["labels"].size() / 2 - 1;
    result += row.dump() + "\n";
  }
  return result + "{\"input_ids\": [3, 4], \"labels\": [3, -100]}\n";
}

TEST_F(LanguageRuns, TheLossCountsSupervisedTokensOnly) {
  std::size_t trained = 0, scored = 0;
  write_file(train_, half_supervised(tiny_documents(40), trained));
  write_file(dev_, half_supervised(tiny_documents(9), scored));
  write_file(model_ / "chat_template.jinja", "{{ messages }}");
  const ProgramRun whole = train(directory_ / "whole", {"--steps", "3"});
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_EQ(read_file(directory_ / "whole/best/chat_template.jinja"), "{{ messages }}");
  EXPECT_THAT(whole.errors, HasSubstr("1 sample without a supervised token is left out"));
  EXPECT_EQ(read_json(directory_ / "whole/results.json")["tokens"], scored);
  const std::vector<json> expected = records_of(directory_ / "whole", "step");
  // a micro-batch of one sample, sharding, recomputation and bfloat16
  for (const Words& more : std::vector<Words>{
           {"--micro-batch", "1"}, {"--mode", "sharded", "--recompute", "layer"}, {"--precision", "bfloat16"}}) {
    const fs::path output = directory_ / more.back();
    const ProgramRun run = train(output, joined({"--steps", "3"}, more));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    const double tolerance = more.back() == "bfloat16" ? 2e-2 : 1e-5;
    EXPECT_NEAR(records_of(output, "step").back()["loss"], expected.back()["loss"], tolerance) << more.back();
  }
  const fs::path documents = train_;
  for (const char* name : {"samples.h5", "samples.jsonl"}) {
    const ProgramRun prepared =
        run_mylos({"prepare", "--model", model_, "--data", documents, "--output", directory_ / name});
    ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
    train_ = directory_ / name;
    const fs::path output = directory_ / (std::string("of-") + name);
    const ProgramRun run = train(output, {"--steps", "3"});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(records_of(output, "step").back()["loss"], expected.back()["loss"]) << name;
  }
  expect_refused(train(run_, {"--steps", "1", "--long", "split"}), "--long split: ");
  train_ = directory_ / "samples.h5";
  expect_refused(train(run_, {"--steps", "1", "--loss-on", "assistant"}),
                 "was prepared with --loss-on its default, this run has assistant");
}

TEST_F(LanguageRuns, DocumentsAreSplitOrTruncated) {
  const ProgramRun split = train(directory_ / "split", {"--steps", "1", "--max-length", "6"});
  ASSERT_EQ(split.exit_code, 0) << split.errors;
  EXPECT_THAT(split.errors, Not(HasSubstr("40 documents, 40 samples")));
  const ProgramRun cut = train(run_, {"--steps", "1", "--max-length", "6", "--long", "truncate"});
  EXPECT_THAT(cut.errors, AllOf(HasSubstr("40 documents, 40 samples"), HasSubstr("tokens left out")));
}

TEST_F(LanguageRuns, WithoutATokenizerModelDocumentsBringTheirIds) {
  const std::string reported = "has no tokenizer (tokenizer.json or tokenizer.model): documents must contain ids";
  const ProgramRun run = train(run_, {"--steps", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr(model_.string() + " " + reported));
  const ProgramRun scored = run_mylos({"eval", "--model", run_, "--data", dev_, "--output", directory_ / "scored"});
  EXPECT_EQ(scored.exit_code, 0) << scored.errors;
  EXPECT_THAT(scored.errors, HasSubstr(reported));
  write_file(directory_ / "texts.txt", "e2e4\n");
  expect_refused(run_mylos({"eval", "--model", run_, "--data", directory_ / "texts.txt", "--output", directory_ / "x"}),
                 "texts.txt, line 1: text, but the model's directory has no tokenizer; give ids as input_ids instead");
}

TEST_F(LanguageRuns, ATokenizerMayHaveFewerPiecesThanTheModel) {
  write_file(model_ / "tokenizer.model", letters_model());  // 5 pieces
  write_file(train_, "{\"text\": \"abba\"}\n{\"text\": \"ab\"}\n{\"text\": \"baab\"}\n{\"text\": \"bb\"}\n");
  const ProgramRun run = train(run_, {"--steps", "1"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, Not(HasSubstr("tokenizer.model")));
  json config = read_json(model_ / "config.json");
  config["vocab_size"] = 4;
  write_file(model_ / "config.json", config.dump());
  expect_refused(train(directory_ / "other", {"--steps", "1"}),
                 "tokenizer.model: has 5 pieces, and the model's vocab_size is 4");
}

TEST_F(LanguageRuns, ConversationsKeepTheirTimeAndTemplate) {
  write_file(model_ / "tokenizer.model", letters_model());
  const std::string dated =  // the digits of minutes and seconds, each as four letters
      "{% for c in strftime_now('%M%S') %}{% for digits in ['13579', '2367', '4567', '89'] %}"
      "{{ 'a' if c in digits else 'b' }}{% endfor %}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}";
  write_file(model_ / "chat_template.jinja", dated);
  const std::string row = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  write_file(train_, row + "\n" + row + "\n" + row + "\n" + row + "\n");
  ASSERT_EQ(train(run_, {"--steps", "1"}).exit_code, 0);
  const json resolved = read_json(run_ / "run.json")["resolved"];
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const ProgramRun longer = train(run_, {"--steps", "2", "--extend"});
  EXPECT_EQ(longer.exit_code, 0) << longer.errors;
  ASSERT_EQ(run_mylos({"train", "--config", run_ / "run.json", "--output", directory_ / "again"}).exit_code, 0);
  for (const fs::path& run : {run_, directory_ / "again"}) {
    const json later = read_json(run / "run.json")["resolved"];
    EXPECT_EQ(later["chat-time"], resolved["chat-time"]);
    EXPECT_EQ(later["checksums"], resolved["checksums"]);
  }

  const fs::path samples = directory_ / "samples.h5";
  ASSERT_EQ(run_mylos({"prepare", "--model", model_, "--data", train_, "--output", samples}).exit_code, 0);
  train_ = samples;
  ASSERT_EQ(train(directory_ / "prepared", {"--steps", "1"}).exit_code, 0);
  EXPECT_FALSE(read_json(directory_ / "prepared/run.json")["resolved"].contains("chat-time"));
  write_file(model_ / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  expect_refused(train(directory_ / "other", {"--steps", "1"}),
                 "samples.h5 was prepared with a chat template (CRC32C ");
}

TEST_F(LanguageRuns, BadInputIsNamed) {
  const auto expect_error = [&](const std::string& lines, const std::string& what, const Words& more = {},
                                int exit_code = 1) {
    write_file(train_, lines);
    expect_refused(train(run_, more), what, exit_code);
    EXPECT_FALSE(fs::exists(run_ / "last"));
  };
  const std::string first = "{\"input_ids\": [3, 4]}\n", location = train_.string() + ", line 2";
  expect_error(first + "{\"input_ids\": [3, 29]}\n",
               location + ": input_ids[1]: id 29 is outside the model's vocabulary of 29");
  expect_error("{\"text\": \"e2e4\"}\n", "has no tokenizer; give ids");
  expect_error("", train_.string() + ": contains no documents");
  expect_error(first + "{\"input_ids\": []}\n", location, {"--strict"});
  expect_error(tiny_documents(4), "--max-length 64: expected at most 32", {"--max-length", "64"}, 2);
  expect_error(tiny_documents(4), "--doc-stride belongs to --task question-answering", {"--doc-stride", "8"}, 2);
  expect_error(tiny_documents(4), "--dropout 0.1: these models have no dropout; leave it out", {"--dropout", "0.1"}, 2);
}

/// The default length is reduced to fit the model, and the recommended command contains it.
TEST_F(LanguageRuns, ThePlannedLineFitsTheModel) {
  const ProgramRun plan = run_mylos({"plan", "--model", model_, "--gpu", "h100", "--data", train_});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr("--max-length 32"));
}

}  // namespace
}  // namespace mylos::tests
