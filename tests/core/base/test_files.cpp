#include "core/base/files.hpp"
#include "core/base/printable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

using ::testing::HasSubstr;
using tests::error_of;
using tests::read_file;
using tests::TemporaryDirectory;
using tests::write_file;

std::size_t entries(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(Files, PrintableEscapesControlsAndCutsLongNames) {
  EXPECT_EQ(printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(printable(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(printable(std::string(81, 'x')), std::string(80, 'x') + "...");
}

TEST(Files, ReadTextReadsAllBytesAndNamesWhatItCannotRead) {
  const TemporaryDirectory directory;
  const std::string bytes("a\0b\r\n", 5);
  write_file(directory / "f", bytes);
  EXPECT_EQ(read_text(directory / "f"), bytes);
  const auto absent = directory / "absent";
  EXPECT_EQ(error_of([&] { read_text(absent); }), "cannot read " + absent.string() + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_text(directory.path()); }),
            "cannot read " + directory.path().string() + ": Is a directory");
}

TEST(Files, StagedFileAppearsOnlyOnCommit) {
  const TemporaryDirectory directory;
  const auto target = directory / "new/file";
  {
    StagedFile file(target);
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(target));
  }
  EXPECT_EQ(entries(directory / "new"), 0u);
  write_text(target, "whole");
  EXPECT_EQ(read_file(target), "whole");
  EXPECT_EQ(entries(directory / "new"), 1u);
}

TEST(Files, FullDiskNamesTheFileAndLeavesTheOldOne) {
  const TemporaryDirectory directory;
  const auto target = directory / "file";
  write_file(target, "old");
  std::string message;
  {
    const tests::FileSizeLimit limit(1000);
    message = error_of([&] { write_text(target, std::string(5000, 'x')); });
  }
  EXPECT_EQ(message, "cannot write " + target.string() + ": File too large");
  EXPECT_EQ(read_file(target), "old");
  EXPECT_EQ(entries(directory.path()), 1u);
}

TEST(Files, StagedFileRefusesADirectoryAndAnUnusableParent) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { StagedFile file(directory.path()); }),
            "cannot write " + directory.path().string() + ": Is a directory");
  write_file(directory / "file", "");
  EXPECT_THAT(error_of([&] { StagedFile file(directory / "file/below"); }),
              HasSubstr("cannot create directory " + (directory / "file").string()));
}

TEST(Files, StagedDirectoryReplacesAnExistingOneWhole) {
  const TemporaryDirectory directory;
  write_file(directory / "best/old", "old");
  {
    const StagedDirectory abandoned(directory / "best");
    write_file(abandoned.path() / "new", "half");
  }
  EXPECT_EQ(read_file(directory / "best/old"), "old");
  StagedDirectory staged(directory / "best/");
  write_file(staged.path() / "new", "new");
  staged.commit();
  EXPECT_EQ(read_file(directory / "best/new"), "new");
  EXPECT_FALSE(std::filesystem::exists(directory / "best/old"));
  EXPECT_EQ(entries(directory.path()), 1u);
}

TEST(Files, StagedDirectoryDoesNotReplaceAFile) {
  const TemporaryDirectory directory;
  write_file(directory / "best", "a file");
  StagedDirectory staged(directory / "best");
  EXPECT_EQ(error_of([&] { staged.commit(); }),
            "cannot create directory " + (directory / "best").string() + ": Not a directory");
  EXPECT_EQ(read_file(directory / "best"), "a file");
}

TEST(Files, RemoveAbandonedRemovesOnlyPartialsOfThatName) {
  const TemporaryDirectory directory;
  write_file(directory / "best.partial-0000abcd/model", "half");
  write_file(directory / "best/model", "whole");
  write_file(directory / "last.partial-0000abcd/model", "half");
  // People's own.
  write_file(directory / "best.partial-old/model", "whole");
  write_file(directory / "best.partial-0000abcd.bak", "whole");
  write_file(directory / "best.partial-0000ABCD", "whole");
  remove_abandoned(directory / "best");
  EXPECT_FALSE(std::filesystem::exists(directory / "best.partial-0000abcd"));
  EXPECT_EQ(entries(directory.path()), 5u);
}

}  // namespace
}  // namespace mylos
