#include "app/runs/resumption.hpp"

#include "app/options/parse.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos::tests {
namespace {

using nlohmann::ordered_json;
using ::testing::ThrowsMessage;

const std::vector<tasks::DataChecksum> data = {{"train", "train.json", 0x12abU}, {"dev", "dev.json", 7U}};

TEST(Resumption, TakesDataWithTheSameChecksums) {
  const ordered_json saved = {{"resolved", {{"checksums", {{"train", "000012ab"}, {"dev", "00000007"}}}}}};
  EXPECT_NO_THROW(app::check_resumed_data(saved, "a.h5", data));
}

TEST(Resumption, NamesTheFileThatHoldsOtherData) {
  const ordered_json saved = {{"resolved", {{"checksums", {{"train", "000012ab"}, {"dev", "00000008"}}}}}};
  EXPECT_THAT([&] { app::check_resumed_data(saved, "a.h5", data); },
              ThrowsMessage<std::runtime_error>(
                  "--dev dev.json: its data differ from those that the run of a.h5 read: the checksum was 00000008 and "
                  "is 00000007; restore the file, or start over with another --output or --overwrite --resume "
                  "never"));
}

TEST(Resumption, TakesWhatAnOlderVersionDidNotNote) {
  EXPECT_NO_THROW(app::check_resumed_data(ordered_json::object(), "a.h5", data));
  EXPECT_NO_THROW(app::check_resumed_data({{"resolved", {{"steps", 3}}}}, "a.h5", data));
  EXPECT_NO_THROW(app::check_resumed_data({{"resolved", nullptr}}, "a.h5", data));
}

ordered_json run_with(std::size_t ranks, std::size_t micro_batch, bool deterministic = false) {
  return {{"deterministic", deterministic},
          {"resolved", {{"ranks", ranks}, {"mode", "replicated"}, {"micro-batch", micro_batch}}}};
}

TEST(Resumption, SaysWhereSumsHaveAnotherOrder) {
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(2, 4)), "");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(2, 2)),
            "micro-batch 2, before 4: losses may differ in their last digits from those of an uninterrupted run");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 4), run_with(1, 8)),
            "ranks 1, before 2; micro-batch 8, before 4: losses may differ in their last digits from those of an "
            "uninterrupted run");
  EXPECT_EQ(app::changed_layout_line(run_with(2, 1, true), run_with(4, 1, true)), "");
  EXPECT_EQ(app::changed_layout_line(ordered_json(), run_with(1, 8)), "") << "a new run";
  EXPECT_EQ(app::changed_layout_line(ordered_json::object(), run_with(1, 8)), "");
}

class CommandLine : public testing::Test {
 protected:
  std::string line(std::vector<std::string> words, bool goes_on = true, std::size_t ranks = 1) const {
    words.insert(words.begin(), {"--model", "m", "--train_file=t", "--output", directory_.path()});
    std::string text =
        app::how_to_go_on(app::parse_arguments(FileReader(), *app::find_command("train"), words), goes_on, ranks);
    const std::string output = directory_.path();
    return text.replace(text.find(output), output.size(), "o");
  }

  tests::TemporaryDirectory directory_;
};

TEST_F(CommandLine, IsTheOneThatWasTypedWithoutWhatBeginsAnew) {
  tests::write_file(directory_ / "checkpoints/step-000005.h5", "a checkpoint");
  const std::string plain = "to continue from the checkpoint: mylos train --model m --train_file=t --output o";
  EXPECT_EQ(line({}), plain);
  EXPECT_EQ(line({"--overwrite"}), plain);
  EXPECT_EQ(line({"--overwrite_output_dir", "True", "--bf16"}), plain + " --bf16");
  EXPECT_EQ(line({"--resume", "other", "--seed", "7"}), plain + " --seed 7");
  EXPECT_EQ(line({"--resume", "other"}, false), plain + " --resume other") << "where a fresh start begins";
  EXPECT_EQ(line({"--resume", "never"}, false), plain);
  EXPECT_EQ(line({"--extend", "--steps", "9"}), plain + " --extend --steps 9");
  EXPECT_EQ(line({"--dev", "a b's"}), plain + R"( --dev 'a b'\''s')");
}

TEST_F(CommandLine, LeavesOutWhatHasNoEffect) {
  EXPECT_EQ(line({"--token", "secret", "--report_to", "none"}).find("secret"), std::string::npos);
  EXPECT_EQ(line({"--report_to", "none"}).find("report"), std::string::npos);
}

TEST_F(CommandLine, SaysThatNothingWasSavedAndWhatMayChange) {
  EXPECT_EQ(line({}, false, 4),
            "no checkpoint was saved; to start over, on any number of ranks: mylos train --model m --train_file=t "
            "--output o");
}

}  // namespace
}  // namespace mylos::tests
