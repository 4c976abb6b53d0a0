#include "core/base/directory_lock.hpp"

#include "core/base/process.hpp"
#include "core/base/setting_error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace mylos {
namespace {

std::string content_of(int descriptor) {
  std::array<char, 300> text{};
  const auto length = ::pread(descriptor, text.data(), text.size(), 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "another process";
}

/// Records this process in the lock file, for the error message of others. Write errors are ignored: they are reported
/// elsewhere.
void write_holder(int descriptor) {
  const std::string holder = fmt::format("process {} on {}", ::getpid(), host_name());
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, holder.data(), holder.size(), 0) > 0;
}

/// Returns 0, or the errno if the lock does not become free in time. Waits because a requeued run may start before its
/// predecessor has ended, and some file systems release locks late.
int lock(int descriptor) {
  constexpr std::chrono::milliseconds pause(50);
  constexpr int attempts = 40;  // 2 s
  for (int attempt = 1; ::flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || attempt >= attempts) return errno;
    std::this_thread::sleep_for(pause);
  }
  return 0;
}

/// Returns whether flock failed because the file system has no locks, such as NFS without its lock service or Lustre
/// mounted without flock.
bool has_no_locks(int code) { return code == ENOLCK || code == EOPNOTSUPP || code == ENOSYS; }

[[noreturn]] void refuse(const std::filesystem::path& directory, const std::string& why) {
  throw SettingError("output", directory.string(), why);
}

/// Opens the lock file and returns its descriptor. O_NOFOLLOW: the holder is written to it, so it must not be a link to
/// someone else's file.
int open_lock(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / DirectoryLock::file_name;
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  const int code = descriptor < 0 ? errno : 0;
  struct stat status {};
  const bool is_file = descriptor >= 0 && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  if (descriptor >= 0 || code == ELOOP || code == ENXIO) {
    refuse(directory, fmt::format("{} in it is a link, a pipe or a device instead of a file: remove it",
                                  DirectoryLock::file_name));
  }
  refuse(directory, fmt::format("cannot write there: {}", std::strerror(code)));
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) : descriptor_(open_lock(directory)) {
  const int code = lock(descriptor_);
  if (has_no_locks(code)) obstacle_ = std::strerror(code);
  if (code == 0 || has_no_locks(code)) {
    write_holder(descriptor_);
    return;
  }
  const std::string holder = content_of(descriptor_);
  ::close(descriptor_);
  if (code != EWOULDBLOCK) {
    refuse(directory, fmt::format("cannot lock {}: {}; choose another directory", file_name, std::strerror(code)));
  }
  refuse(directory,
         fmt::format("a run is writing there ({}); let it end, stop it, or choose another directory", holder));
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace mylos
