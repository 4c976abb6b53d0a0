#include "app/options/parse.hpp"
#include "app/runs/command_line.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::app {
namespace {

class CommandLine : public testing::Test {
 protected:
  std::string line(std::vector<std::string> words, bool goes_on = true, std::size_t ranks = 1) const {
    words.insert(words.begin(), {"--model", "m", "--train_file=t", "--output", directory_.path()});
    std::string text = how_to_go_on(parse_arguments(FileReader(), *find_command("train"), words), goes_on, ranks);
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
}  // namespace mylos::app
