#include "core/base/files/directory_lock.hpp"

#include "core/base/process/process.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/uninterrupted.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

namespace mylos {
namespace {

/// Returns nullopt if the file cannot be read.
std::optional<std::string> content_of(int descriptor) {
  std::array<char, 512> text{};
  const auto length = uninterrupted([&] { return ::pread(descriptor, text.data(), text.size(), 0); });
  if (length < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

/// Returns the process named in the file's content, for messages.
std::string holder_in(const std::string& content) {
  return content.empty() ? "another process" : content.substr(0, content.find('\n'));
}

/// Returns 0, or the errno if the lock does not become free in time. Waits because a requeued run may start before its
/// predecessor has ended, and some file systems release locks late.
int lock(int descriptor) {
  constexpr std::chrono::milliseconds pause(50);
  constexpr int attempts = 40;  // 2 s
  const auto try_lock = [descriptor] { return ::flock(descriptor, LOCK_EX | LOCK_NB); };
  for (int attempt = 1; uninterrupted(try_lock) != 0; ++attempt) {
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

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : file_(directory / file_name), descriptor_(open_lock(directory)) {
  const int code = lock(descriptor_);
  if (has_no_locks(code)) obstacle_ = std::strerror(code);
  if (code == 0 || has_no_locks(code)) {
    signature_ = content_of(descriptor_).value_or("");
    return;
  }
  const std::string holder = holder_in(content_of(descriptor_).value_or(""));
  ::close(descriptor_);
  if (code != EWOULDBLOCK) {
    refuse(directory, fmt::format("cannot lock {}: {}; choose another directory", file_name, std::strerror(code)));
  }
  refuse(directory,
         fmt::format("a run is writing there ({}); let it end, stop it, or choose another directory", holder));
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

void DirectoryLock::sign() {
  const std::string text = fmt::format("process {} on {}\n{}\n", ::getpid(), host_name(), unique_key());
  // Write errors are ignored: they are reported elsewhere.
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, text.data(), text.size(), 0) > 0;
  signature_ = content_of(descriptor_).value_or("");
}

std::string DirectoryLock::loss() const {
  const int found =
      uninterrupted([this] { return ::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
  const bool is_gone = found < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE);
  if (is_gone) return fmt::format("{} was removed", file_.string());
  if (found < 0) return {};
  struct stat own {
  }, other{};
  const bool is_known = ::fstat(descriptor_, &own) == 0 && ::fstat(found, &other) == 0;
  const bool is_same = own.st_dev == other.st_dev && own.st_ino == other.st_ino;
  const std::optional<std::string> content = content_of(found);
  ::close(found);
  if (!is_known || !content || (is_same && *content == signature_)) return {};
  return fmt::format("{} belongs to {} now", file_.string(), holder_in(*content));
}

}  // namespace mylos
