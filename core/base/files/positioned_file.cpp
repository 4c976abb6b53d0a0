#include "core/base/files/positioned_file.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/uninterrupted.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace mylos {
namespace {

int flags_of(PositionedFile::Use use) {
  switch (use) {
    case PositionedFile::Use::read:
      return O_RDONLY | O_NONBLOCK;  // opening a pipe does not wait for its writer
    case PositionedFile::Use::write:
      return O_WRONLY;
    default:
      return O_RDWR | O_CREAT | O_EXCL;
  }
}

}  // namespace

PositionedFile::PositionedFile(std::filesystem::path path, Use use)
    : path_(std::move(path)),
      descriptor_(uninterrupted([&] { return ::open(path_.c_str(), flags_of(use) | O_CLOEXEC, 0666); })) {
  if (descriptor_ < 0) fail_with_errno(use == Use::read ? "read" : "write", path_, errno);
}

PositionedFile::~PositionedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::uint64_t PositionedFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_with_errno("read", path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void PositionedFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto count =
        uninterrupted([&] { return ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) fail_with_errno("read", path_, errno);
    if (count == 0) fail(fmt::format("{} ends early, at byte {}: it is truncated", path_.string(), offset));
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void PositionedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto count =
        uninterrupted([&] { return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) fail_with_errno("write", path_, errno);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void PositionedFile::begin_flush(std::uint64_t offset, std::uint64_t count) const {
#ifdef SYNC_FILE_RANGE_WRITE
  ::sync_file_range(descriptor_, static_cast<off64_t>(offset), static_cast<off64_t>(count), SYNC_FILE_RANGE_WRITE);
#endif
}

void PositionedFile::reserve(std::uint64_t size) const {
  // posix_fallocate would write to every block if the file system cannot reserve space.
  const int code = uninterrupted([&] { return ::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)); });
  if (code == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) fail_with_errno("write", path_, errno);
  resize(size);
}

void PositionedFile::resize(std::uint64_t size) const {
  const int code = uninterrupted([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); });
  if (code != 0) fail_with_errno("write", path_, errno);
}

void PositionedFile::sync_and_close() {
  if (uninterrupted([this] { return ::fsync(descriptor_); }) != 0) fail_with_errno("write", path_, errno);
  close_written(std::exchange(descriptor_, -1), path_);
}

}  // namespace mylos
