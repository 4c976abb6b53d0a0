#include "core/base/files/directory_lock.hpp"

#include "core/base/process/process.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace {

int flock_error = 0;

}  // namespace

/// Overrides the system's function, and fails if a test requests it.
extern "C" int flock(int descriptor, int operation) noexcept {
  errno = flock_error;
  return flock_error != 0 ? -1 : static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

namespace mylos {
namespace {

using ::testing::HasSubstr;

constexpr const char* refused = "in it is a link, a pipe or a device instead of a file: remove it";

// Writing the holder's name must not change the target of a link.
TEST(DirectoryLock, DoesNotFollowALink) {
  const tests::TemporaryDirectory directory;
  const std::filesystem::path others = directory / "others", run = directory / "run";
  tests::write_file(others, "somebody's");
  std::filesystem::create_directory(run);
  std::filesystem::create_symlink(others, run / DirectoryLock::file_name);
  EXPECT_THAT(tests::error_of([&] { const DirectoryLock lock(run); }), HasSubstr(refused));
  EXPECT_EQ(tests::read_file(others), "somebody's");
}

TEST(DirectoryLock, TakesNothingButAFile) {
  const tests::TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / DirectoryLock::file_name).c_str(), 0600), 0);
  EXPECT_THAT(tests::error_of([&] { const DirectoryLock lock(directory.path()); }), HasSubstr(refused));
}

TEST(DirectoryLock, SaysWhereAFileSystemHasNoLocks) {
  const tests::TemporaryDirectory directory;
  for (const int code : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    flock_error = code;
    EXPECT_EQ(DirectoryLock(directory.path()).obstacle(), std::strerror(code));
  }
  flock_error = EIO;
  EXPECT_THAT(tests::error_of([&] { const DirectoryLock lock(directory.path()); }),
              HasSubstr("cannot lock .lock: Input/output error; choose another directory"));
  flock_error = 0;
  EXPECT_EQ(DirectoryLock(directory.path()).obstacle(), "");
}

TEST(DirectoryLock, ReportsThatItIsLost) {
  const tests::TemporaryDirectory directory;
  const std::filesystem::path run = directory / "run", file = run / DirectoryLock::file_name;
  std::filesystem::create_directory(run);
  DirectoryLock lock(run);
  lock.sign();
  EXPECT_EQ(lock.loss(), "");
  std::filesystem::remove_all(run);
  EXPECT_EQ(lock.loss(), file.string() + " was removed");
  std::filesystem::create_directory(run);
  DirectoryLock other(run);
  EXPECT_EQ(lock.loss(), file.string() + " belongs to another process now");
  other.sign();
  const std::string holder = fmt::format("process {} on {}", ::getpid(), host_name());
  EXPECT_EQ(lock.loss(), fmt::format("{} belongs to {} now", file.string(), holder));
  EXPECT_EQ(other.loss(), "");
  // The same file, signed by another process that got the lock, too.
  flock_error = ENOLCK;
  DirectoryLock third(run);
  EXPECT_EQ(other.loss(), "") << "only looked at";
  third.sign();
  flock_error = 0;
  EXPECT_EQ(other.loss(), fmt::format("{} belongs to {} now", file.string(), holder));
  EXPECT_EQ(third.loss(), "");
}

}  // namespace
}  // namespace mylos
