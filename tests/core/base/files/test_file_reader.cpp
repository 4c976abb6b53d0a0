#include "core/base/files/file_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "core/base/value_bytes.hpp"
#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::error_of;

static_assert(std::is_constructible_v<FileReader, FileCopies&>);
static_assert(!std::is_constructible_v<FileReader, FileCopies>, "it would refer to copies that are gone");

std::vector<std::string> names_of(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

class FileCopiesTest : public testing::Test {
 protected:
  tests::TemporaryDirectory directory_;
  fs::path file_ = directory_ / "config.json";
};

TEST_F(FileCopiesTest, AreReadWhereTheFilesAreGone) {
  write_text(file_, "{}");
  FileCopies copies;
  const FileReader keeping(copies, 100);
  EXPECT_EQ(keeping.read_text(file_), "{}");
  EXPECT_THAT(names_of(keeping.list_directory(directory_.path())), ElementsAre("config.json"));
  fs::remove(file_);
  // As another process receives them.
  const auto received = value_of_bytes<FileCopies>(bytes_of_value(copies));
  const FileReader using_copies(received);
  EXPECT_EQ(using_copies.read_text(file_), "{}");
  const std::vector<DirectoryEntry> entries = using_copies.list_directory(directory_.path());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "config.json");
  EXPECT_EQ(entries[0].kind, EntryKind::file);
  EXPECT_THAT(error_of([&] { FileReader().read_text(file_); }), HasSubstr("cannot read " + file_.string()));
  EXPECT_THAT(FileReader().list_directory(directory_.path()), IsEmpty());
}

TEST_F(FileCopiesTest, AreNotMadeOfLargeFiles) {
  write_text(file_, "large");
  FileCopies copies;
  FileReader(copies, 4).read_text(file_);
  EXPECT_TRUE(copies.texts.empty());
  // A file without a copy is read.
  const FileReader using_copies(copies);
  EXPECT_EQ(using_copies.read_text(file_), "large");
  EXPECT_THAT(names_of(using_copies.list_directory(directory_.path())), ElementsAre("config.json"));
}

TEST_F(FileCopiesTest, HoldTheValuesThatAreReadOnce) {
  FileCopies copies;
  int reads = 0;
  const auto read = [&](const FileReader& files) {
    std::vector<int> numbers;
    std::string name;
    const auto from_file = [&] {
      ++reads;
      numbers = {3, 1, 4};
      name = "pi";
    };
    files.read_once(file_, from_file, numbers, name);
    EXPECT_THAT(numbers, ElementsAre(3, 1, 4));
    EXPECT_EQ(name, "pi");
  };
  read(FileReader());
  read(FileReader(copies, 0));
  EXPECT_EQ(reads, 2);
  const auto received = value_of_bytes<FileCopies>(bytes_of_value(copies));
  const FileReader using_copies(received);
  EXPECT_TRUE(using_copies.has_values(file_));
  read(using_copies);
  EXPECT_EQ(reads, 2) << "the copy is used";
  std::string name;
  EXPECT_THAT(error_of([&] {
                using_copies.read_once(
                    file_, [] {}, name);
              }),
              HasSubstr("of a file"))
      << "other values";
}

TEST_F(FileCopiesTest, ListEntriesByWhatLinksLeadTo) {
  write_text(directory_ / "a", "");
  fs::create_directory(directory_ / "b");
  fs::create_symlink("a", directory_ / "c");
  fs::create_symlink("b", directory_ / "d");
  fs::create_symlink("nowhere", directory_ / "e");
  const std::vector<DirectoryEntry> entries = list_directory(directory_.path());
  EXPECT_THAT(names_of(entries), ElementsAre("a", "b", "c", "d", "e"));
  std::vector<EntryKind> kinds;
  for (const DirectoryEntry& entry : entries) kinds.push_back(entry.kind);
  EXPECT_THAT(kinds, ElementsAre(EntryKind::file, EntryKind::directory, EntryKind::file, EntryKind::directory,
                                 EntryKind::missing));
  EXPECT_THAT(error_of([&] { list_directory(directory_ / "nowhere"); }),
              HasSubstr("cannot read " + (directory_ / "nowhere").string()));
}

}  // namespace
}  // namespace mylos
