#include "train/directory_lock.hpp"

#include "core/error.hpp"
#include "train/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace mylos::train {
namespace {

std::string content_of(int descriptor) {
  std::array<char, 300> text{};
  const auto length = ::pread(descriptor, text.data(), text.size(), 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "another process";
}

/// Says whose lock it is, for the message others get; that nothing can be written there is found elsewhere.
void write_holder(int descriptor) {
  const std::string holder = fmt::format("process {} on {}", ::getpid(), host_name());
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, holder.data(), holder.size(), 0) > 0;
}

/// Errors: errno where it does not come free. A run that was put back into the queue may start while its predecessor is
/// still dying, and some file systems tell of a lock's end late.
int lock(int descriptor) {
  constexpr std::chrono::milliseconds pause(50);
  constexpr int attempts = 40;  // 2 s
  for (int attempt = 1; ::flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK || attempt == attempts) return errno;
    std::this_thread::sleep_for(pause);
  }
  return 0;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  descriptor_ = ::open((directory / file_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    fail(fmt::format("--output {}: cannot write there: {}", directory.string(), std::strerror(errno)));
  const int code = lock(descriptor_);
  if (code == 0) {
    write_holder(descriptor_);
  } else if (code == EWOULDBLOCK) {
    const std::string holder = content_of(descriptor_);
    ::close(descriptor_);
    fail(fmt::format("--output {}: a run is writing there ({}); let it end, stop it, or choose another directory",
                     directory.string(), holder));
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace mylos::train
