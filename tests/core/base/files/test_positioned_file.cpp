#include "core/base/files/positioned_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/temporary.hpp"

namespace {

bool can_reserve = true;  // whether file systems can reserve space
int interruptions = 0;    // of the next calls, by signals

}  // namespace

/// Replaces the C library's function in this program. posix_fallocate does not call it.
extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (interruptions-- > 0) {
    errno = EINTR;
    return -1;
  }
  if (can_reserve) return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, length));
  errno = EOPNOTSUPP;
  return -1;
}

namespace mylos {
namespace {

/// Returns the bytes on disk of a file of 4 MiB for which space was reserved.
std::size_t reserved_bytes(const std::filesystem::path& path) {
  constexpr std::size_t size = std::size_t{4} << 20;
  PositionedFile file(path, PositionedFile::Use::create);
  file.reserve(size);
  EXPECT_EQ(file.size(), size);
  struct stat status {};
  EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(PositionedFile, ReservingWritesNothingWhereTheFileSystemCannotReserve) {
  const tests::TemporaryDirectory directory;
  can_reserve = false;
  const std::size_t bytes = reserved_bytes(directory / "file");
  can_reserve = true;
  EXPECT_LE(bytes, std::size_t{64} << 10);
}

TEST(PositionedFile, ReservingGoesOnAfterASignal) {
  const tests::TemporaryDirectory directory;
  interruptions = 3;
  EXPECT_GE(reserved_bytes(directory / "file"), std::size_t{4} << 20);
  EXPECT_LT(interruptions, 0);
}

}  // namespace
}  // namespace mylos
