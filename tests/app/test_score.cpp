#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// mylos score prints exactly the output of the official scripts.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

class Score : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string write(const char* name, const std::string& text) {
    write_file(directory_ / name, text);
    return directory_ / name;
  }
  const std::string data_ = write("data.json", R"({"data": [{"paragraphs": [{"context": "a b c", "qas": [
      {"id": "x", "question": "?", "answers": [{"text": "a b", "answer_start": 0}]},
      {"id": "y", "question": "?", "answers": [], "is_impossible": true}]}]}], "version": "v2.0"})");
};

TEST(ExampleScores, AreTheOfficialOnes) {
  const fs::path recorded = golden_data() / "reference/examples_run";
  const ProgramRun run = run_mylos({"score", source_dir() / "examples/squad/dev.json", recorded / "predictions.json"});
  EXPECT_EQ(run.output, read_file(recorded / "results.json"));
  EXPECT_EQ(run.errors, "");
}

TEST_F(Score, TakesProbabilitiesOfNoAnswer) {
  const std::string predictions = write("p.json", R"({"x": "a b", "y": "c"})");
  const std::string odds = write("odds.json", R"({"x": 0.1, "y": 0.9})");
  const auto score = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"score", data_, predictions};
    words.insert(words.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_mylos(words).output);
  };
  // The article "a" is removed, so "a b" becomes "b" on both sides.
  EXPECT_EQ(score({})["exact"], 50.0);
  EXPECT_EQ(score({"--na-prob-file", odds})["best_exact"], 100.0);
  EXPECT_EQ(score({"--na-prob-file", odds})["best_exact_thresh"], 0.1);
  EXPECT_EQ(score({"--na_prob_file", odds, "--na_prob_thresh", "0.5"})["exact"], 100.0);
  EXPECT_EQ(score({"--squad", "2.0"})["total"], 2);
}

TEST_F(Score, OptionsOfTheOtherVersionAreRefused) {
  const std::string data = write("one.json", R"({"data": [{"paragraphs": [{"context": "a b", "qas": [
      {"id": "x", "question": "?", "answers": [{"text": "b", "answer_start": 2}]}]}]}], "version": "1.1"})");
  const std::string predictions = write("p.json", R"({"x": "b"})");
  EXPECT_EQ(run_mylos({"score", data, predictions}).output, "{\"exact_match\": 100.0, \"f1\": 100.0}\n");
  const ProgramRun run = run_mylos({"score", data, predictions, "--na-prob-thresh", "0.5"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.errors,
            "mylos: error: --na-prob-thresh: " + data +
                " is scored by the rules of SQuAD 1.1, which has no unanswerable questions; use --squad 2.0\n");
}

TEST_F(Score, MissingPredictionsAreCountedOnStandardError) {
  const std::string predictions = write("p.json", R"({"x": "b"})");
  const ProgramRun run = run_mylos({"score", data_, predictions});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(run.output)["total"], 1);
  EXPECT_EQ(run.errors, predictions + ": 1 questions have no prediction, the first is y\n");
}

}  // namespace
}  // namespace mylos::tests
