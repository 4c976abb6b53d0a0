#include "tests/support/temporary.hpp"
#include "train/append_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

namespace mylos::train {
namespace {

/// Lets no file of this process grow past `bytes` while it lives: a disk that is full there.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

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
    const FileSizeLimit limit(10);
    EXPECT_EQ(tests::error_of([&] { file.append("the second\n"); }),
              "cannot write " + (directory / "log").string() + ": File too large");
  }
  EXPECT_EQ(tests::read_file(directory / "log"), "first\n");
}

}  // namespace
}  // namespace mylos::train
