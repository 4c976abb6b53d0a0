#include "core/base/files/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/memory_limit.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

namespace {

/// The behaviour of the file system used by a StagedDirectory.
struct FileSystem {
  bool exchanges = true;
  int renames_until_kill = -1;           ///< the process dies before the next rename after these
  std::filesystem::path unflushed = {};  ///< a directory that cannot be flushed
};
FileSystem file_system;

}  // namespace

/// Override the system's functions. NFS, for example, cannot exchange directories.
extern "C" int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned int flags) {
  if (!file_system.exchanges) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
extern "C" int rename(const char* from, const char* to) {
  if (file_system.renames_until_kill == 0) ::raise(SIGKILL);
  --file_system.renames_until_kill;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int fsync(int descriptor) {
  std::error_code none;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), none);
  if (path != file_system.unflushed) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = EIO;
  return -1;
}

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

TEST(Files, LinksWithoutTargetAndGitLfsPointersAreNamed) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("nowhere", directory / "link");
  for (const auto& use : {+[](const std::filesystem::path& path) { (void)read_text(path); },
                          +[](const std::filesystem::path& path) { (void)is_present(path); }}) {
    EXPECT_THAT(error_of([&] { use(directory / "link"); }),
                HasSubstr("link is a link to nowhere, which does not exist"));
  }
  EXPECT_FALSE(is_present(directory / "absent"));
  write_file(directory / "nowhere", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n");
  EXPECT_TRUE(is_present(directory / "link"));
  EXPECT_THAT(error_of([&] { read_text(directory / "link"); }),
              HasSubstr("link: a git-lfs pointer, not the file itself; run `git lfs pull` in its directory"));
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

TEST(Files, AFileThatMemoryDoesNotHoldIsNamed) {
  if (tests::heap_is_sanitized) GTEST_SKIP() << "the sanitizer ends the program at such a request";
  const TemporaryDirectory directory;
  const auto sparse = directory / "sparse";
  write_file(sparse, "");
  std::filesystem::resize_file(sparse, std::size_t{1} << 30);
  const tests::MemoryLimit limit(std::size_t{64} << 20);
  EXPECT_EQ(error_of([&] { read_text(sparse); }), sparse.string() + ": there is no memory for its 1.00 GiB");
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

/// Simulates a file system that cannot exchange directories during its lifetime.
class WithoutExchange {
 public:
  explicit WithoutExchange(int renames_until_kill = -1) {
    file_system = {.exchanges = false, .renames_until_kill = renames_until_kill};
  }
  ~WithoutExchange() { file_system = {}; }
  WithoutExchange(const WithoutExchange&) = delete;
  WithoutExchange& operator=(const WithoutExchange&) = delete;
};

void replace_best(const std::filesystem::path& best, const std::string& text) {
  StagedDirectory staged(best);
  write_file(staged.path() / "model", text);
  staged.commit();
}

TEST(Files, StagedDirectoryReplacesWhereDirectoriesCannotBeExchanged) {
  const TemporaryDirectory directory;
  write_file(directory / "best/old", "old");
  const WithoutExchange nfs;
  replace_best(directory / "best", "new");
  EXPECT_EQ(read_file(directory / "best/model"), "new");
  EXPECT_FALSE(std::filesystem::exists(directory / "best/old"));
  EXPECT_EQ(entries(directory.path()), 1u);
}

/// Between the renames, `best` does not exist; the old one has another name, under which the next writer finds it.
TEST(Files, AWriterKilledWhereDirectoriesCannotBeExchangedLosesNothing) {
  for (const int renames : {0, 1}) {
    const TemporaryDirectory directory;
    write_file(directory / "best/model", "old");
    const pid_t child = ::fork();
    if (child == 0) {
      const WithoutExchange nfs(renames);
      replace_best(directory / "best", "new");
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(std::filesystem::exists(directory / "best"), renames == 0);
    remove_abandoned(directory / "best");
    EXPECT_EQ(read_file(directory / "best/model"), "old") << renames;
    EXPECT_EQ(entries(directory.path()), 1u) << renames;
    replace_best(directory / "best", "newer");
    EXPECT_EQ(read_file(directory / "best/model"), "newer");
  }
}

TEST(Files, ADirectoryThatCannotBeFlushedKeepsWhatWasReplaced) {
  for (const bool exchanges : {true, false}) {
    const TemporaryDirectory directory;
    write_file(directory / "best/model", "old");
    StagedDirectory staged(directory / "best");
    write_file(staged.path() / "model", "new");
    file_system = {.exchanges = exchanges, .unflushed = std::filesystem::canonical(directory.path())};
    EXPECT_EQ(error_of([&] { staged.commit(); }), "cannot flush " + directory.path().string() + ": Input/output error");
    EXPECT_EQ(read_file(directory / "best/model"), "new");
    EXPECT_EQ(entries(directory.path()), 2u) << "the old one is there, too";
    EXPECT_EQ(error_of([&] { write_text(directory / "file", "text"); }),
              "cannot flush " + directory.path().string() + ": Input/output error");
    file_system = {};
  }
}

TEST(Files, StagedDirectoryDoesNotReplaceAFile) {
  const TemporaryDirectory directory;
  write_file(directory / "best", "a file");
  StagedDirectory staged(directory / "best");
  EXPECT_EQ(error_of([&] { staged.commit(); }),
            "cannot create directory " + (directory / "best").string() + ": Not a directory");
  EXPECT_EQ(read_file(directory / "best"), "a file");
}

/// Ends a process that writes `target` and has not committed.
void leave_half_written(const std::filesystem::path& target) {
  const pid_t child = ::fork();
  if (child == 0) {
    StagedFile file(target);
    file.write("half");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(Files, ALaterWriterRemovesWhatAKilledOneLeftButNotWhatALivingOneWrites) {
  const TemporaryDirectory directory;
  leave_half_written(directory / "file");
  leave_half_written(directory / "other");
  EXPECT_EQ(entries(directory.path()), 2u);
  StagedFile living(directory / "file");
  EXPECT_EQ(entries(directory.path()), 2u) << "the other file's, and the new one";
  living.write("living");
  StagedDirectory model(directory / "model");
  write_text(directory / "file", "whole");
  remove_all_abandoned(directory.path());
  EXPECT_EQ(entries(directory.path()), 3u);
  living.commit();
  model.commit();
  EXPECT_EQ(read_file(directory / "file"), "living");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "model"));
  EXPECT_EQ(entries(directory.path()), 2u);
}

TEST(Files, RemoveAbandonedRemovesOnlyPartialsOfThatName) {
  const TemporaryDirectory directory;
  write_file(directory / "best.partial-0000abcd/model", "half");  // of an earlier version
  write_file(directory / "best.partial-0123456789abcdef/model", "half");
  write_file(directory / "best/model", "whole");
  write_file(directory / "last.partial-0000abcd/model", "half");
  // Files of users with similar names.
  write_file(directory / "best.partial-old/model", "whole");
  write_file(directory / "best.partial-0000abcd.bak", "whole");
  write_file(directory / "best.partial-0000ABCD", "whole");
  remove_abandoned(directory / "best");
  EXPECT_FALSE(std::filesystem::exists(directory / "best.partial-0000abcd"));
  EXPECT_EQ(entries(directory.path()), 5u);
}

}  // namespace
}  // namespace mylos
