#include "data/images/inflated_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

}  // namespace

InflatedFile::InflatedFile(std::filesystem::path path) : path_(std::move(path)) {
  ensure(!std::filesystem::is_directory(path_), fmt::format("{} is a directory, not a file", path_.string()));
  errno = 0;
  file_ = gzopen(path_.c_str(), "rbe");
  if (file_ == nullptr) fail_with_errno("open", path_, errno == 0 ? ENOMEM : errno);
  gzbuffer(handle(file_), piece_bytes / 8);
}

InflatedFile::~InflatedFile() { gzclose(handle(file_)); }

std::size_t InflatedFile::read_into(char* target, std::size_t count) {
  const int read = gzread(handle(file_), target, static_cast<unsigned>(count));
  int code = Z_OK;
  const char* text = gzerror(handle(file_), &code);
  // Z_BUF_ERROR means that the compressed data is truncated, which a short count shows as well.
  if (read < 0 || (code != Z_OK && code != Z_BUF_ERROR)) {
    const std::string_view reason = text;  // the part after the file name
    const std::size_t begin = reason.starts_with(path_.native()) ? path_.native().size() + 2 : 0;
    fail(fmt::format("{} is damaged (zlib: {})", path_.string(), reason.substr(std::min(begin, reason.size()))));
  }
  position_ += static_cast<std::size_t>(read);
  return static_cast<std::size_t>(read);
}

std::string InflatedFile::read(std::size_t count) {
  const std::uint64_t begin = position_;
  std::string bytes;
  while (bytes.size() < count) {
    const std::size_t held = bytes.size(), wanted = std::min(count - held, piece_bytes);
    bytes.resize(held + wanted);
    if (read_into(bytes.data() + held, wanted) == wanted) continue;
    fail(fmt::format("{} ends after {} bytes; its header promises {}", path_.string(), position_, begin + count));
  }
  return bytes;
}

void InflatedFile::expect_end() {
  const std::uint64_t end = position_;
  char more = 0;
  if (read_into(&more, 1) != 0) {
    fail(fmt::format("{} is longer than the {} bytes that its header promises", path_.string(), end));
  }
}

}  // namespace mylos::data
