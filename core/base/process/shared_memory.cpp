#include "core/base/process/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace mylos {
namespace {

[[noreturn]] void fail_call(std::string_view call, int code) { fail(fmt::format("{}: {}", call, std::strerror(code))); }

/// Opens a file in memory without a name. Unlike a file in /dev/shm, it does not count for the size of that file
/// system, which containers often limit to 64 MiB. Called directly because glibc before 2.27 has no function for it.
int open_memory_file() {
#ifdef SYS_memfd_create
  constexpr unsigned close_on_exec = 1, not_executable = 8;  // MFD_CLOEXEC, MFD_NOEXEC_SEAL (since Linux 6.3)
  const auto create = [](unsigned flags) { return static_cast<int>(::syscall(SYS_memfd_create, "mylos-data", flags)); };
  const int descriptor = create(close_on_exec | not_executable);
  return descriptor < 0 && errno == EINVAL ? create(close_on_exec) : descriptor;
#else
  errno = ENOSYS;
  return -1;
#endif
}

/// Without this, the first write to a page that the system cannot provide would end the process with SIGBUS.
void reserve_file(int descriptor, std::size_t bytes) {
  // In pieces, because a signal undoes the whole of a call.
  constexpr std::size_t piece = std::size_t{64} << 20;
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    const auto size = static_cast<off_t>(std::min(piece, bytes - begin));
    int code = EINTR;
    while (code == EINTR) code = ::posix_fallocate(descriptor, static_cast<off_t>(begin), size);
    if (code != 0) fail_call(fmt::format("cannot reserve {} bytes", bytes), code);
  }
}

std::byte* map_file(int descriptor, std::size_t bytes, int protection, int flags) {
  void* const address = ::mmap(nullptr, bytes, protection, flags, descriptor, 0);
  if (address == MAP_FAILED) fail_call(fmt::format("cannot map {} bytes", bytes), errno);
  return static_cast<std::byte*>(address);
}

struct stat status_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_call("fstat", errno);
  return status;
}

/// Closes a descriptor at the end of a scope.
class Closing {
 public:
  explicit Closing(int descriptor) : descriptor_(descriptor) {}
  ~Closing() { ::close(descriptor_); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  int descriptor_;
};

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : size_(bytes) {
  const int descriptor = open_memory_file();
  if (descriptor < 0) fail_call("memfd_create", errno);
  try {
    reserve_file(descriptor, bytes);
    data_ = map_file(descriptor, bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  descriptor_ = descriptor;
}

SharedMemory::SharedMemory(const Location& location) : size_(static_cast<std::size_t>(location.bytes)) {
  const std::string path = fmt::format("/proc/{}/fd/{}", location.process, location.descriptor);
  const auto check = [&](const struct stat& status) {
    const bool is_same = status.st_dev == location.device && status.st_ino == location.file &&
                         static_cast<std::uint64_t>(status.st_size) == location.bytes;
    ensure(is_same, fmt::format("{} is of another process: the ranks of the node do not see each other", path));
  };
  // In another PID namespace this is an unrelated file, such as a pipe, which opening could wait for or change.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_call(fmt::format("cannot open {}", path), errno);
  check(status);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_call(fmt::format("cannot open {}", path), errno);
  const Closing closing(descriptor);
  check(status_of(descriptor));
  data_ = map_file(descriptor, size_, PROT_READ, MAP_SHARED | MAP_POPULATE);
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedMemory::Location SharedMemory::location() const {
  require(descriptor_ >= 0, "shared memory of another process, or sealed");
  const struct stat status = status_of(descriptor_);
  return {
      .process = ::getpid(), .descriptor = descriptor_, .device = status.st_dev, .file = status.st_ino, .bytes = size_};
}

std::span<std::byte> SharedMemory::writable() {
  require(descriptor_ >= 0, "shared memory of another process, or sealed");
  return {data_, size_};
}

void SharedMemory::seal() {
  require(descriptor_ >= 0, "shared memory of another process, or sealed");
  if (::mprotect(data_, size_, PROT_READ) != 0) fail_call("mprotect", errno);
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace mylos
