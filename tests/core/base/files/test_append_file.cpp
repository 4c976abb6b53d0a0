#include "core/base/files/append_file.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <string>

namespace mylos {
namespace {

TEST(AppendFile, KeepsWhatIsThereAndGrowsAtOnce) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "log", "old\n");
  AppendFile file(directory / "log");
  file.append("new\n");
  EXPECT_EQ(tests::read_file(directory / "log"), "old\nnew\n");
}

TEST(AppendFile, NamesTheFileThatCannotBeOpened) {
  const tests::TemporaryDirectory directory;
  const auto path = directory / "absent/log";
  EXPECT_EQ(tests::error_of([&] { AppendFile file(path); }),
            "cannot write " + path.string() + ": No such file or directory");
}

TEST(AppendFile, NamesTheFileOnAFullDisk) {
  AppendFile file("/dev/full");
  EXPECT_EQ(tests::error_of([&] { file.append("x\n"); }), "cannot write /dev/full: No space left on device");
}

TEST(AppendFile, TakesBackTheHalfOfARecordThatFitted) {
  const tests::TemporaryDirectory directory;
  AppendFile file(directory / "log");
  file.append("first\n");
  {
    const tests::FileSizeLimit limit(10);
    EXPECT_EQ(tests::error_of([&] { file.append("the second\n"); }),
              "cannot write " + (directory / "log").string() + ": File too large");
  }
  EXPECT_EQ(tests::read_file(directory / "log"), "first\n");
}

}  // namespace
}  // namespace mylos
