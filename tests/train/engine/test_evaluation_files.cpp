#include "tests/support/temporary.hpp"
#include "train/engine/evaluation_files.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

std::vector<std::size_t> steps_in(const std::filesystem::path& directory) {
  std::vector<std::size_t> steps;
  for (const KeptEvaluation& evaluation : list_evaluations(directory)) steps.push_back(evaluation.step);
  return steps;
}

TEST(EvaluationFiles, AreListedInTheOrderOfSteps) {
  const tests::TemporaryDirectory directory;
  EXPECT_TRUE(list_evaluations(directory.path()).empty());
  for (const std::size_t step : {1000u, 200u, 30u, 0u}) keep_evaluation(directory.path(), step, "{}\n");
  for (const char* other : {"x.json", "12.txt", "7.json.partial-0badcafe"}) {
    tests::write_file(directory / "evaluations" / other, "{}");
  }
  EXPECT_EQ(steps_in(directory.path()), (std::vector<std::size_t>{0, 30, 200, 1000}));
  EXPECT_EQ(tests::read_file(list_evaluations(directory.path())[3].file), "{}\n");
}

TEST(EvaluationFiles, AreCutBackToAStep) {
  const tests::TemporaryDirectory directory;
  cut_evaluations(directory.path(), 3, false);  // there are no files
  for (const std::size_t step : {2u, 3u, 4u}) keep_evaluation(directory.path(), step, "{}\n");
  cut_evaluations(directory.path(), 3, false);
  EXPECT_EQ(steps_in(directory.path()), (std::vector<std::size_t>{2, 3}));
  cut_evaluations(directory.path(), 3, true);  // a run that starts with the evaluation after step 3
  EXPECT_EQ(steps_in(directory.path()), (std::vector<std::size_t>{2}));
}

TEST(EvaluationFiles, NoteTheStepOfTheBestModel) {
  const tests::TemporaryDirectory directory;
  EXPECT_EQ(noted_best(directory.path()), std::nullopt);
  for (const std::size_t step : {4u, 12u}) note_best(directory.path(), step);
  EXPECT_EQ(noted_best(directory.path()), 12u);
  EXPECT_TRUE(list_evaluations(directory.path()).empty());
}

}  // namespace
}  // namespace mylos::train
