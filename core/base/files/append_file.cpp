#include "core/base/files/append_file.hpp"

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

off_t size_of(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno("write", path, errno);
  return status.st_size;
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ =
      uninterrupted([this] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) fail_with_errno("write", path_, errno);
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view record) {
  if (broken_at_ && !cut(*broken_at_)) fail_with_errno("write", path_, errno);
  broken_at_.reset();
  const off_t size = size_of(descriptor_, path_);
  const std::size_t whole = record.size();
  while (!record.empty()) {
    const auto written = uninterrupted([&] { return ::write(descriptor_, record.data(), record.size()); });
    if (written < 0) {
      const int code = errno;
      if (record.size() < whole && !cut(size)) broken_at_ = size;
      fail_with_errno("write", path_, code);
    }
    record.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::sync() {
  if (uninterrupted([this] { return ::fdatasync(descriptor_); }) != 0) fail_with_errno("write", path_, errno);
}

bool AppendFile::cut(std::int64_t size) const {
  return uninterrupted([&] { return ::ftruncate(descriptor_, size); }) == 0;
}

}  // namespace mylos
