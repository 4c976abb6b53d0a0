#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>

/// Questions with numeric ids in the file, as in COVID-QA, through the program.
namespace mylos::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Returns tiny_questions() with the ids 1, 2, 3, ...
std::string numbered_questions() {
  json document = json::parse(tiny_questions());
  int id = 0;
  for (json& paragraph : document["data"][0]["paragraphs"]) {
    for (json& question : paragraph["qas"]) question["id"] = ++id;
  }
  return document.dump();
}

class NumberedQuestions : public TinyRun {
 protected:
  NumberedQuestions() { write_file(numbered_, numbered_questions()); }

  ProgramRun train(const std::string& order) const {
    write_file(directory_ / "order.jsonl", order);
    return run_mylos({"train", "--model", model_, "--train", numbered_, "--dev", numbered_, "--order",
                      directory_ / "order.jsonl", "--output", run_, "--steps", "2", "--max-length", "60",
                      "--doc-stride", "20"});
  }

  std::filesystem::path numbered_ = directory_ / "numbered.json";
};

TEST_F(NumberedQuestions, AreTrainedOnInAGivenOrderAndScored) {
  const ProgramRun run = train("[[1, 0], [2, 0]]\n[[\"3\", 0]]\n");
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json predictions = json::parse(read_file(run_ / "predictions.json"));
  EXPECT_EQ(predictions.size(), 12u);
  EXPECT_TRUE(predictions.contains("1") && predictions.contains("12")) << predictions;
  const ProgramRun score = run_mylos({"score", numbered_, run_ / "predictions.json"});
  ASSERT_EQ(score.exit_code, 0) << score.errors;
  EXPECT_EQ(json::parse(score.output)["f1"], json::parse(read_file(run_ / "results.json"))["f1"]);
}

TEST_F(NumberedQuestions, AnOrderFileWithOtherNumbersIsRefused) {
  const std::string location = (directory_ / "order.jsonl").string() + ": line 1: ";
  EXPECT_THAT(train("[[1.5, 0]]\n").errors,
              HasSubstr(location + "expected a string or a whole number of at most 64 bits, found 1.5"));
  EXPECT_THAT(train("[[13, 0]]\n").errors, HasSubstr(location + "the training data has no question \"13\""));
}

}  // namespace
}  // namespace mylos::tests
