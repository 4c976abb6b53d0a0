#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"
#include "train/monitor/log_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos::train {
namespace {

using testing::ElementsAre;

class LogFileTest : public testing::Test {
 protected:
  Notice notice() {
    return [this](const std::string& line) { said_.push_back(line); };
  }
  std::string text() const { return tests::read_file(path_); }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "log";
  std::vector<std::string> said_;
};

TEST_F(LogFileTest, WritesAtOnce) {
  LogFile file(path_, notice());
  file.append("first\n");
  EXPECT_EQ(text(), "first\n");
  EXPECT_EQ(file.missing(), "");
  EXPECT_TRUE(said_.empty());
}

TEST_F(LogFileTest, KeepsWhatTheDiskDoesNotTakeAndWritesItOnceInOrder) {
  LogFile file(path_, notice());
  file.append("first\n");
  for (int time = 0; time < 2; ++time) {
    const std::string before = text();
    {
      const tests::FileSizeLimit limit(before.size() + 4);
      file.append("the second\n");  // half of it fits
      file.append("third\n");
      EXPECT_EQ(file.missing(), "cannot write " + path_.string() + ": File too large; 2 records are missing there");
      EXPECT_EQ(text(), before);
    }
    EXPECT_EQ(file.missing(), "");
    EXPECT_EQ(text(), before + "the second\nthird\n");
  }
  EXPECT_THAT(said_, ElementsAre("cannot write " + path_.string() +
                                     ": File too large; the run continues, keeps its records in memory and tries again",
                                 path_.string() + " is written again, with the records that were kept"));
}

TEST_F(LogFileTest, TriesAgainAtItsEnd) {
  {
    LogFile file(path_);
    const tests::FileSizeLimit limit(0);  // the limit ends before the file is closed
    file.append("first\n");
    EXPECT_EQ(text(), "");
  }
  EXPECT_EQ(text(), "first\n");
}

TEST_F(LogFileTest, CountsWhatIsMoreThanItKeeps) {
  LogFile file(path_, notice(), 10);
  {
    const tests::FileSizeLimit limit(0);
    for (const char* record : {"first\n", "second\n", "3\n"}) file.append(record);
  }
  EXPECT_EQ(file.missing(), "could not always write " + path_.string() + "; 1 record is missing there");
  EXPECT_EQ(text(), "first\n3\n");
}

TEST_F(LogFileTest, ThatCannotBeMadeIsAnError) {
  EXPECT_EQ(tests::error_of([&] { LogFile file(directory_ / "absent/log"); }),
            "cannot write " + (directory_ / "absent/log").string() + ": No such file or directory");
}

}  // namespace
}  // namespace mylos::train
