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

TEST_F(ImageRanks, DoNotChangeDeterministicRuns) {
  const Words more = {"--epochs", "1", "--batch", "16", "--deterministic", "--leaves", "4", "--augment", "crop-flip"};
  const fs::path alone = directory_ / "alone";
  const ProgramRun single = train_on(1, alone, more), both = train_on(2, run_, more);
  ASSERT_EQ(single.exit_code, 0) << single.errors;
  ASSERT_EQ(both.exit_code, 0) << both.errors;
  EXPECT_EQ(read_file(run_ / "last/model.safetensors"), read_file(alone / "last/model.safetensors"));
  EXPECT_EQ(read_file(run_ / "predictions.jsonl"), read_file(alone / "predictions.jsonl"));
}

TEST_F(ImageRanks, NeedAGroupEach) {
  const ProgramRun run = train_on(4, run_, {"--steps", "1", "--batch-norm-group", "8", "--batch", "16"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.errors, HasSubstr("--batch 16 has 2 groups of 8 images (--batch-norm-group), fewer than the 4 ranks; "
                                    "use --batch-norm-group 4, a larger --batch, or fewer ranks"));
  const ProgramRun few =
      train_on(2, run_, {"--steps", "1", "--train-limit", "5", "--batch-norm-group", "8", "--batch", "16"});
  EXPECT_NE(few.exit_code, 0);
  EXPECT_THAT(few.errors, HasSubstr("a full batch has 1 group, fewer than the 2 ranks"));
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

TEST_F(ImageRanks, SyntheticImagesAreAsManyAsAllRanksTake) {
  const ProgramRun run = run_on(2, derecho_words({"--steps_syn", "2", "--labels", "3", "--batch-norm-group", "4"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_json(run_ / "run.json")["train"], "synthetic:16x16x16");
  EXPECT_EQ(rows(run_, "step").size(), 2u);
  EXPECT_EQ(rows(run_, "step")[0]["images"], 8);
}

}  // namespace
}  // namespace mylos::tests
