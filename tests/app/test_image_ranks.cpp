#include "tests/app/image_runs.hpp"

/// Runs of ResNets on several ranks.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ImageRanks : public ImageRuns, protected RankLauncher {
 protected:
  void SetUp() override {
    if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
    ImageRuns::SetUp();
  }
  ProgramRun train_on(std::size_t ranks, const fs::path& output, const Words& more) const {
    return run_on(ranks, train_words(output, more));
  }
};

TEST_F(ImageRanks, NeedAGroupEach) {
  const ProgramRun run = train_on(4, run_, {"--steps", "1", "--batch-norm-group", "8", "--batch", "16"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.errors, HasSubstr("--batch 16 has 2 groups of 8 images (--batch-norm-group), fewer than the 4 ranks; "
                                    "use --batch-norm-group 4, a larger --batch, or fewer ranks"));
}

/// Both ranks evaluate the damaged image, because there are fewer batches than ranks. One of them trains on it.
TEST_F(ImageRanks, ADamagedPictureIsNamedInOneLine) {
  write_pictures();
  const fs::path model = directory_ / "coloured";
  write_small_classifier(model, 2, 3);
  for (const char* data : {"--train", "--dev"}) {
    SCOPED_TRACE(data);
    const fs::path damaged = directory_ / data;
    fs::copy(pictures_, damaged, fs::copy_options::recursive);
    write_file(damaged / "dogs/2.png", "no picture");
    Words more = {"--model", model, "--image-size", "16", "--epochs", "1", "--batch", "4", "--batch-norm-group", "2"};
    for (const char* option : {"--train", "--dev"}) {
      more.insert(more.end(), {option, std::string(option) == data ? damaged : pictures_});
    }
    const ProgramRun run = train_on(2, directory_ / "output", more);
    EXPECT_EQ(run.exit_code, 1);
    Words lines = run.error_lines();
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("mylos: "); });
    ASSERT_EQ(lines.size(), 1u) << run.errors;
    EXPECT_THAT(lines.front(), HasSubstr("dogs/2.png: is neither JPEG nor PNG; `mylos prepare` leaves damaged"));
    fs::remove_all(directory_ / "output");
  }
}

/// Each rank meets some of the damaged pictures. The same pictures replace them.
TEST_F(ImageRanks, DamagedPicturesAreSkippedAlikeOnAnyRanks) {
  write_small_classifier(model_, 2, 3);
  write_coloured_pictures(pictures_);
  for (const char* file : {"cats/1.png", "dogs/3.png"}) write_file(pictures_ / file, "no picture");
  Words skipping = joined(
      {"--train", pictures_, "--dev", pictures_, "--image-size", "16", "--batch", "4", "--steps", "6"},
      {"--damaged", "skip", "--batch-norm-group", "2", "--deterministic", "--leaves", "2", "--checkpoint-every", "3"});
  const fs::path alone = directory_ / "alone", resumed = directory_ / "resumed";
  const ProgramRun single = train_on(1, alone, skipping), both = train_on(2, run_, skipping);
  ASSERT_EQ(single.exit_code, 0) << single.errors;
  skipping.insert(skipping.end(), {"--mode", "sharded", "--resume", run_ / "checkpoints/step-000003.h5"});
  const ProgramRun second_half = train_on(2, resumed, skipping);
  const std::string left_out = pictures_.string() + ": 2 damaged pictures left out of the scores, the first: ",
                    replaced = pictures_.string() +
                               ": 2 damaged pictures replaced by the next ones of the epoch, the first: " +
                               (pictures_ / "cats/1.png").string();
  for (const ProgramRun& run : {single, both, second_half}) {
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, ::testing::AllOf(HasSubstr(replaced), HasSubstr(left_out)));
  }
  for (const fs::path& run : {run_, resumed}) {
    EXPECT_EQ(read_file(run / "last/model.safetensors"), read_file(alone / "last/model.safetensors")) << run;
    EXPECT_EQ(read_file(run / "predictions.jsonl"), read_file(alone / "predictions.jsonl")) << run;
  }
  const json results = read_json(alone / "results.json");
  EXPECT_EQ(results["images"], 6);
  EXPECT_EQ(results["damaged"], 2);
  const ProgramRun scored = run_mylos(
      {"eval", "--model", alone, "--data", pictures_, "--damaged", "skip", "--output", directory_ / "scored"});
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  EXPECT_EQ(json::parse(scored.output)["damaged"], 2);
  EXPECT_THAT(scored.errors, HasSubstr(left_out));
}

/// The run does not use the damaged picture, so that it can be repaired as well as skipped.
TEST_F(ImageRanks, ARunThatADamagedPictureEndedGoesOn) {
  write_small_classifier(model_, 2, 3);
  write_coloured_pictures(pictures_);
  const std::string whole = read_file(pictures_ / "dogs/3.png");
  write_file(directory_ / "order.jsonl", "[0, 1]\n[2, 3]\n[4, 5]\n[6, 7]\n");
  Words more =
      joined({"--train", pictures_, "--dev", pictures_, "--image-size", "16", "--order", directory_ / "order.jsonl"},
             {"--steps", "4", "--checkpoint-every", "1"});
  write_file(pictures_ / "dogs/3.png", "no picture");
  const ProgramRun failed = train_on(1, run_, more);
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_THAT(failed.errors, HasSubstr("dogs/3.png: is neither JPEG nor PNG; `mylos prepare` leaves damaged pictures "
                                       "out, and --damaged skip goes on without them\n"));
  const fs::path skipped = directory_ / "skipped";
  fs::copy(run_, skipped, fs::copy_options::recursive);
  const auto expect_continued = [](const ProgramRun& run) {
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("goes on after step "));
  };
  Words skipping = joined(more, {"--damaged", "skip"});
  expect_continued(train_on(1, skipped, skipping));
  write_file(pictures_ / "dogs/3.png", whole);
  expect_continued(train_on(1, run_, more));
}

TEST_F(ImageRanks, SyntheticImagesAreAsManyAsAllRanksTake) {
  const ProgramRun run = run_on(2, derecho_words({"--steps_syn", "2", "--labels", "3", "--batch-norm-group", "4"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_json(run_ / "run.json")["train"], "synthetic:16x16x16");
  EXPECT_EQ(records_of(run_, "step").size(), 2u);
  EXPECT_EQ(records_of(run_, "step")[0]["images"], 8);
}

}  // namespace
}  // namespace mylos::tests
